"""The doctor of lakes: checks their health, and mends what can be mended without a loss."""

from ducklake_lab.doctor.check import Finding
from ducklake_lab.doctor.examine import Examination, examine
from ducklake_lab.doctor.repairing import Repaired, preview, repair

__all__ = ["Examination", "Finding", "Repaired", "examine", "preview", "repair"]
