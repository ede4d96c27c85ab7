"""Which addresses are the outside world's, however they are wrapped."""

from typing import Any

import pytest

from docmill.webhooks.addresses import AddressRefused, connect, is_plainly_private, is_public
from docmill.webhooks.posting import post


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
        *("169.254.169.254", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        # One address inside another.
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    ],
)
def test_private_ones_are_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "api.internal", "box.home.arpa"),
        *("receiver", "127.0.0.1", "2130706433", "0x7f.1", "127.1", "::1", "::ffff:10.0.0.1", "169.254.169.254"),
    ],
)
def test_what_is_private_is_known_without_asking_anybody(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_nobody(monkeypatch)
    assert is_plainly_private(host)


@pytest.mark.parametrize("host", ["example.com", "a.b.example", "1.1.1.1", "2606:4700:4700::1111", "x" * 70 + ".com"])
def test_what_may_be_public_is_left_to_the_moment_of_sending(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_nobody(monkeypatch)
    assert not is_plainly_private(host)


def ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks a name server fails."""
    import socket

    real = socket.getaddrinfo

    def numeric(host: str, port: int | None, **more: Any) -> Any:
        assert more.get("flags", 0) & socket.AI_NUMERICHOST
        return real(host, port, **more)

    monkeypatch.setattr(socket, "getaddrinfo", numeric)


def test_a_host_with_one_private_address_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have several addresses, and which is taken must not be its owner's choice."""
    import socket

    def both(host: str, port: int, **more: object) -> list[tuple[object, ...]]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("93.184.216.34", port)), (*kind, ("10.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with pytest.raises(AddressRefused, match="two-faced"):
        connect("two-faced.example", 80, timeout=1.0, public=True)
    with pytest.raises(AddressRefused):
        post("https://two-faced.example/", b"", {}, timeout=1.0, public=True)
