"""Holds one list of answers against another."""

from dataclasses import dataclass, field


@dataclass
class Comparison:
    """How answers differ from those of a reference, section by section."""

    questions: int = 0
    same_first: int = 0  # questions with the same best section
    same_set: int = 0  # with the same sections, in any order
    largest: float = 0.0  # the largest difference of a section's log_prob
    total: float = 0.0  # the sum of these differences, with their signs
    sections: int = 0  # how many were summed up
    swapped: int = 0  # sections found by one alone, of scores too close to tell
    wrong: list = field(default_factory=list)  # differences above the tolerance, in words

    def add(self, question, reference, other, tolerance):
        self.questions += 1
        expected = {hit["section"]: hit["log_prob"] for hit in reference}
        found = {hit["section"]: hit["log_prob"] for hit in other}
        self.same_first += list(expected)[:1] == list(found)[:1]
        self.same_set += expected.keys() == found.keys()
        if len(expected) != len(found):
            self.wrong.append(f"{len(found)} hits, not {len(expected)}: {question}")
            return
        for section in expected.keys() & found.keys():
            size = found[section] - expected[section]
            self.total += size
            self.sections += 1
            self._difference(question, section, abs(size), tolerance)
        # A section that one side alone found was, for the other, below its last: both searches are
        # exact, so it can be above that last by no more than the arithmetic differs.
        for mine, theirs in ((expected, found), (found, expected)):
            for section in mine.keys() - theirs.keys():
                self.swapped += 1
                above = mine[section] - min(theirs.values())
                self._difference(question, section, max(0.0, above), tolerance)

    def words(self):
        return (
            f"same first section {self.same_first}/{self.questions}, same three "
            f"{self.same_set}/{self.questions}, sections swapped {self.swapped}, difference of a "
            f"log_prob at most {self.largest:.4f}, mean {self.total / max(1, self.sections):+.4f}"
        )

    def _difference(self, question, section, size, tolerance):
        self.largest = max(self.largest, size)
        # Not `size > tolerance`: a score that is no number is wrong, too.
        if not size <= tolerance:
            self.wrong.append(f"section {section} differs by {size:.3f}: {question}")


def compare(reference, other, tolerance):
    """Compares the answers to those questions that both have; `other` may ask one again and again."""
    expected = {answer["query"]: answer["hits"] for answer in reference if "hits" in answer}
    result = Comparison()
    for answer in other:
        if "hits" in answer and answer["query"] in expected:
            result.add(answer["query"], expected[answer["query"]], answer["hits"], tolerance)
    return result


def recall(answers, gold, k):
    """The share of questions whose right section is among the first `k`."""
    right = 0
    for answer, section in zip(answers, gold):
        names = [f"{hit['number']} {hit['title']}".strip() for hit in answer.get("hits", [])[:k]]
        right += section in names
    return right / max(1, len(answers))
