"""Runs `python -m ducklake_lab.cli` as `ducklake-lab`."""

import sys

from ducklake_lab.cli.command import main

sys.exit(main())
