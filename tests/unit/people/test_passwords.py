"""How many passwords are hashed at once: strangers decide how many are asked for."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

from docmill.people.limits import SignInLimited
from docmill.people.passwords import AT_ONCE, WAITING, Argon2Passwords
from docmill.testing.waiting import until


class SlowHasher:
    """Hashes until it is let go, and knows how many it hashed at once."""

    def __init__(self) -> None:
        self.go = Event()
        self.lock = Lock()
        self.now = self.most = 0

    def verify(self, password: str, stored: str) -> bool:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.go.wait(60)
        with self.lock:
            self.now -= 1
        return True


def test_two_are_hashed_at_once_a_few_wait_and_the_rest_come_again() -> None:
    passwords, hasher = Argon2Passwords(), SlowHasher()
    passwords.__dict__["_hasher"] = hasher
    with ThreadPoolExecutor(AT_ONCE + WAITING + 1) as threads:
        answers = [threads.submit(passwords.matches, "correct horse", "stored") for _ in range(AT_ONCE + WAITING + 1)]
        try:
            # Whichever came last is told at once, while all others still wait.
            until(lambda: any(each.done() for each in answers), 60, what="the one too many")
        finally:
            hasher.go.set()
    refused = [each.exception() for each in answers if each.exception() is not None]
    assert [type(each) for each in refused] == [SignInLimited]
    assert hasher.most == AT_ONCE
    assert passwords.matches("correct horse", "stored")
