"""What the machine is called."""

import os
import re
import subprocess


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line.split(":", 1) for line in file if ":" in line]
    except OSError:
        return "unknown processor"
    return next((value.strip() for key, value in lines if key.strip() == "model name"), "unknown processor")


def is_virtual() -> bool:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return any(line.startswith("flags") and " hypervisor" in line for line in file)
    except OSError:
        return False


def gpu() -> str:
    """Name and driver of the first GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown GPU"
    return text.splitlines()[0].strip() if text.strip() else "unknown GPU"


def slug(text: str) -> str:
    """`Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz` as `intel-xeon-gold-6230`."""
    text = re.sub(r"\((R|TM)\)|@.*|\b(CPU|Processor|\d+-Core)\b", " ", text, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unknown"


def name(device: str) -> str:
    """The folder of this machine's results."""
    if device == "cuda":
        return slug(gpu().split(",")[0])
    return f"{slug(processor())}-{os.cpu_count()}-{'vcpu' if is_virtual() else 'cpu'}"
