# SPDX-License-Identifier: Apache-2.0
"""The schemas of Kubernetes and KServe, a tritonserver and its clients are in environment `triton`; elsewhere the tests that
need them are left out."""
import importlib.util

NEEDS_ENVIRONMENT = ["test_images.py", "test_manifests.py", "test_served.py"]
collect_ignore = [] if importlib.util.find_spec("kubernetes_validate") else NEEDS_ENVIRONMENT
