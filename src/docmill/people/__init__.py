"""Who people are and what they did: passwords, tokens, limits of sign-in, the audit log.

What may not live here: what people do (that is `services`), and what they may do (that is `model.people`).
"""
