"""What the bot did that Discord forbids."""


class Violations:
    """Sentences, each saying what was sent and which rule it broke. None may be left when the tests end."""

    #: More are counted, and not kept.
    LIMIT = 200

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._left_out = 0

    def record(self, sentence: str) -> None:
        if len(self._sentences) < self.LIMIT:
            self._sentences.append(sentence)
        else:
            self._left_out += 1

    def take(self, part: str) -> list[str]:
        """The violations with `part` in them, which the test expected: they are not held against it any more."""
        taken = [sentence for sentence in self._sentences if part in sentence]
        self._sentences = [sentence for sentence in self._sentences if part not in sentence]
        return taken

    def assert_none(self) -> None:
        found, left_out = self._sentences, self._left_out
        assert not found, f"the bot broke {len(found) + left_out} rules of Discord's: {found[:10]}"

    def __len__(self) -> int:
        return len(self._sentences)
