# SPDX-License-Identifier: Apache-2.0
"""Minutes of mixed load with clients that behave and clients that do not: see __main__.py."""
