"""Videos for the tests."""

from pathlib import Path

import cv2
import numpy as np


def write_video(file: Path, frames: int = 20, code: str = 'mp4v', rate: float = 12.5) -> Path:
    """Noise, because a format may drop repeated frames."""
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*code), rate, (96, 64))
    noise = np.random.default_rng(0)
    for _ in range(frames):
        writer.write(noise.integers(0, 256, (64, 96, 3), np.uint8))
    writer.release()
    return file


def frames_of(file: Path) -> list[np.ndarray]:
    """The frames of a video, (H, W, 3) uint8, BGR."""
    capture, frames = cv2.VideoCapture(str(file)), []
    while (read := capture.read())[0]:
        frames.append(read[1])
    return frames
