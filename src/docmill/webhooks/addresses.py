"""Which addresses are the outside world's: what somebody else named must not reach our own network through us.

Whatever a host is written as (a name, 2130706433, 0x7f.1, ::ffff:127.0.0.1), the resolver turns it into addresses;
those are judged, and one of the judged is connected to, so that a name cannot mean another address a moment later.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from time import monotonic

from docmill.model.errors import RetryableError

_OWN = (".localhost", ".local", ".internal", ".home.arpa")
"""Endings that are set aside for networks of one's own (RFC 6761, 6762, 8375, and ICANN's choice of 2024)."""
_NAT64 = ip_network("64:ff9b::/96")


class AddressRefused(RetryableError):
    """The host is on a network that messages to other people's places must not reach."""

    code = "address_refused"


def is_public(address: str) -> bool:
    """Whether this address belongs to the public internet, also where it only wraps another one."""
    found = _unwrapped(ip_address(address.partition("%")[0]))
    return found.is_global and not found.is_multicast and not found.is_reserved


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


def is_plainly_private(host: str) -> bool:
    """Whether this host cannot be on the public internet, as far as that is known without asking anybody: an address
    in any spelling, or a name that only a network of one's own knows. What other names mean shows when they are used.
    """
    name = host.rstrip(".").lower()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return "." not in name or name.endswith(_OWN)
    return not all(is_public(str(entry[4][0])) for entry in found)


def connect(host: str, port: int, *, timeout: float, public: bool) -> socket.socket:
    """A connection to the host, within the time in all, however many addresses it has.

    With `public`, AddressRefused unless every address is the outside world's.
    """
    deadline = monotonic() + timeout
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if public and not all(is_public(str(entry[4][0])) for entry in found):
        # Not one address of several: which one is asked would be the host's choice.
        raise AddressRefused(
            f"{host} is on a private network, where messages are not sent to. Give a public address, or set "
            "webhooks.private_addresses if the network is yours."
        )
    last: OSError | None = None
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(0.001, deadline - monotonic()))
            sock.connect(address)
            sock.settimeout(timeout)
            return sock
        except OSError as error:
            sock.close()
            last = error
            if monotonic() >= deadline:
                break
    raise last or OSError(f"{host} has no address")
