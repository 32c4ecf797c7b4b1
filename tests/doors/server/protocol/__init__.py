# SPDX-License-Identifier: Apache-2.0
"""What clients say to a server and what they hear: the table of cases, the messages, bytes that are no protocol."""
