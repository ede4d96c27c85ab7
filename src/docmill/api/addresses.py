"""Links that work as they stand: with the address under which whoever gets one reaches the API."""

from fastapi import Request

from docmill.settings import Settings


def absolute(link: str, request: Request, settings: Settings) -> str:
    """The link behind `api.public_url` or, without it, the address that this request was sent to.

    A request that names another host than ours has been refused by then. What a bucket signs is absolute already.
    """
    if not link.startswith("/"):
        return link
    return (settings.api.public_url or f"{request.url.scheme}://{request.url.netloc}") + link
