"""The environment variable that lets torch run code in checkpoint files.

A separate module, because the doctor reads it even if torch is broken.
"""

UNSAFE_SWITCH = 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


def is_on(value: str) -> bool:
    """Whether a value of the variable could mean "on"; torch accepts 1, y, yes and true."""
    return value.strip().lower() not in ('', '0', 'n', 'no', 'false', 'off')
