"""What nvidia-smi says, where it is."""

import shutil
import subprocess
import threading


def query(fields):
    """The first GPU's values of these fields, or None."""
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        return None
    return [value.strip() for value in lines[0].split(",")]


class Peak:
    """The most memory in use, in MiB, and the highest load, in percent, while the block runs."""

    def __enter__(self):
        self.memory, self.load = 0, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.is_set():
            values = query("memory.used,utilization.gpu")
            if values is None:
                return
            memory, load = (int(value) if value.isdigit() else 0 for value in values)
            self.memory, self.load = max(self.memory, memory), max(self.load, load)
            self._done.wait(0.2)
