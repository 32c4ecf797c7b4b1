# SPDX-License-Identifier: Apache-2.0
"""The schemas of Kubernetes and KServe are in environment `triton`; elsewhere these tests are left out."""
import importlib.util

collect_ignore = [] if importlib.util.find_spec("kubernetes_validate") else ["test_manifests.py"]
