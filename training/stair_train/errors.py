"""What the user can put right; printed as one line, without a traceback."""


class TrainingError(Exception):
    """Says the cause and the remedy."""
