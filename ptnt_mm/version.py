"""The version of ptnt_mm: setup.py reads it as text, everything else imports it."""

__version__ = '0.1.0'
