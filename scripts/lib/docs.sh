# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The documentation's site: pages of the repository, the Python reference, and a check of all links between them.

# The layout of the repository, so that links between its pages hold.
assemble_pages() {
  local pages="$root/build/docs"
  rm -rf "$pages"
  mkdir -p "$pages/bench"
  cp -r "$root/docs" "$pages/docs"
  cp -r "$root/bench/results" "$pages/bench/results"
  cp "$root/README.md" "$root/CONTRIBUTING.md" "$root/LICENSE" "$pages"
  for door in paddle torch; do
    mkdir -p "$pages/doors/$door"
    cp "$root/doors/$door"/README*.md "$pages/doors/$door"
  done
  mkdir -p "$pages/fallback_bench"
  cp "$root/fallback_bench"/{README.md,*.svg} "$pages/fallback_bench"
  # The sources that pages link to.
  (cd "$root" && grep -ohE '\]\(\.\./(src|include|doors|tests|bench)/[^)#]*\.(h|hpp|cc|inc|py)' docs/*.md | sed 's,](../,,' | sort -u | xargs cp --parents -t "$pages")
  PYTHONPATH="$root/build/python" "$venv_dir/docs/bin/python" "$root/scripts/lib/python_reference.py" "$pages/docs/python"
}

# build_site: into build/site; ends in a line that scripts/test counts.
build_site() {
  local pages
  if assemble_pages && (cd "$root" && "$venv_dir/docs/bin/mkdocs" build --strict --quiet --clean); then
    pages=$(find "$root/build/site" -name '*.html' | wc -l)
    echo "pages: $pages 0 0"
  else
    echo "pages: 0 1 0"
    return 1
  fi
}
