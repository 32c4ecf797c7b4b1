# SPDX-License-Identifier: Apache-2.0
"""Running a server: starting and ending it, who may call it, what it shows of itself."""
