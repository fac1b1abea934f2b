"""Diagnosis of the installation, and how to fix it."""
