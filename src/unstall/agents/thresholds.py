"""What the server for agents decides by, each with the reason."""

from __future__ import annotations

from unstall.threshold import Threshold

ANSWER_BYTES = Threshold(4000, "of one answer as JSON: an agent reads all of it again at each later step")
TEXT_CHARACTERS = Threshold(300, "of one sentence in an answer; the longest headlines have about 200")
PROGRESS_S = Threshold(1.0, "between two reports of progress: what a person who looks on takes for alive")
END_PATIENCE_S = Threshold(20.0, "until a command that is cancelled is killed: its report may take some seconds")
KEPT_CALLS = Threshold(50, "whose resources stay readable: more than an agent remembers of one session")
