"""What became of each target of a benchmark: a line PASS, FAIL or SKIP, and the status that the program ends with."""

SKIPPED = 77  # status where no target could be judged; ctest's SKIP_RETURN_CODE of these programs


class Verdicts:
    def __init__(self):
        self._counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}

    def judge(self, target, met, found):
        """Found: the figures, beside their bound."""
        self._tell("PASS" if met else "FAIL", target, found)

    def skip(self, target, reason):
        """This run cannot tell whether the target is met."""
        self._tell("SKIP", target, reason)

    def status(self):
        """1 where a target was missed, SKIPPED where none was judged, else 0."""
        return 1 if self._counts["FAIL"] else 0 if self._counts["PASS"] else SKIPPED

    def _tell(self, verdict, target, text):
        self._counts[verdict] += 1
        print(f"{verdict}: {target}: {text}", flush=True)
