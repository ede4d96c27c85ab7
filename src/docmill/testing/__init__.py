"""What tests stand on: private servers, waiting without sleeping, stand-ins that pass the real thing's contract.

Ships with the package so that authors of plug-ins can use it too. Nothing that runs in production imports it.
"""
