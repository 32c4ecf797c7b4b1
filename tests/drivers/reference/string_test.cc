// SPDX-License-Identifier: Apache-2.0
// String ops with the results of Python's str methods and of ONNX's examples.
#include "base/utf8.h"
#include "semantics/string_rules.h"
#include "support/tensor.h"

namespace anymps::testing {
namespace {

using Texts = std::vector<std::string>;

TEST(SplitText, LikePython) {
  EXPECT_EQ(split_text("a.com", ".", -1), (Texts{"a", "com"}));
  EXPECT_EQ(split_text("", ".", -1), (Texts{""}));
  EXPECT_EQ(split_text("o-n-n--x-", "-", -1), (Texts{"o", "n", "n", "", "x", ""}));
  EXPECT_EQ(split_text("a_b_c", "_", 1), (Texts{"a", "b_c"}));
  EXPECT_EQ(split_text("  hello   world ", "", -1), (Texts{"hello", "world"}));
  EXPECT_EQ(split_text("a b  c ", "", 1), (Texts{"a", "b  c "}));
  EXPECT_EQ(split_text("a b", "", 0), (Texts{"a b"}));
  EXPECT_EQ(split_text(" \t\n", "", -1), (Texts{}));
}

TEST(Utf8, KeepsWhatIsNotUtf8) {
  const std::string odd = "a\xff\xc3(\xe2\x82\xac\xf0\x9f\x98\x80\xc0\x80";
  EXPECT_EQ(utf8_of(code_points(odd)), odd);
  EXPECT_EQ(code_points("\xe2\x82\xac"), (std::vector<char32_t>{0x20ac}));
  EXPECT_EQ(code_points("\xed\xa0\x80").size(), 3u);  // a surrogate
}

TEST(CaseRules, BeyondAscii) {
  const CaseRules rules("en_US");
  EXPECT_EQ(rules.upper("größe Ёж"), "GRÖßE ЁЖ");
  EXPECT_EQ(rules.lower("ÀÇÉ ΣΩ"), "àçé σω");
  EXPECT_EQ(rules.lower("\xff"), "\xff");
}

TEST(StringNormalizer, StopWordsAndCase) {
  const Texts words = {"Monday", "tuesday", "Friday", "monday"};
  EXPECT_EQ(TextNormalizer("upper", false, "", {"MONDAY"}).run(words),
            (Texts{"TUESDAY", "FRIDAY"}));
  EXPECT_EQ(TextNormalizer("lower", true, "", {"monday"}).run(words),
            (Texts{"monday", "tuesday", "friday"}));
  EXPECT_EQ(TextNormalizer("none", false, "", {"monday", "tuesday", "friday"}).run(words),
            (Texts{""}));
  EXPECT_EQ(TextNormalizer("none", false, "", {}).run(words), words);
}

TEST(StringConcat, Broadcasts) {
  const auto y = run_reference(
      "string_concat", {TestTensor::texts({2, 1}, {"a", ""}), TestTensor::texts({2}, {"x", "é"})});
  EXPECT_EQ(y.texts(), (Texts{"ax", "aé", "x", "é"}));
}

TEST(RegexFullMatch, MatchesTheWhole) {
  const auto x =
      TestTensor::texts({4}, {"www.google.com", "www.facebook.com", "www.bbc.co.uk", ""});
  EXPECT_EQ(
      run_reference("regex_full_match", {x}, {{"pattern", R"(www\.[\w.-]+\.\bcom\b)"}}).values(),
      (std::vector<double>{1, 1, 0, 0}));
  EXPECT_NE(error_of([&] {
              run_reference("regex_full_match", {x}, {{"pattern", "("}});
            }).find("is not a regular expression"),
            std::string::npos);
}

TEST(Tfidf, OnnxExamples) {
  const auto x = TestTensor::of<int64_t>({12}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  const auto pool = TestTensor::of<int64_t>({10}, {2, 3, 5, 4, 5, 6, 7, 8, 6, 7});
  NamedAttrs attrs = {{"min_length", 2},
                      {"max_length", 2},
                      {"starts", std::vector<int64_t>{0, 4}},
                      {"indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}}};
  EXPECT_EQ(run_reference("tfidf", {x, pool}, attrs).values(),
            (std::vector<double>{0, 0, 0, 0, 1, 1, 1}));
  attrs.emplace_back("max_skip", 5);
  EXPECT_EQ(run_reference("tfidf", {x, pool}, attrs).values(),
            (std::vector<double>{0, 0, 0, 0, 1, 3, 1}));
  attrs[0] = {"min_length", 1};
  EXPECT_EQ(run_reference("tfidf", {x, pool}, attrs).values(),
            (std::vector<double>{0, 3, 1, 0, 1, 3, 1}));
}

TEST(Tfidf, Strings) {
  const auto x = TestTensor::texts({2, 3}, {"a", "b", "a", "b", "b", "c"});
  const auto y = run_reference(
      "tfidf",
      {x, TestTensor::texts({4}, {"a", "b", "b", "c"}), TestTensor(DType::kF32, {3}, {2, 3, 5})},
      {{"mode", "tfidf"},
       {"max_length", 2},
       {"starts", std::vector<int64_t>{0, 2}},
       {"indexes", std::vector<int64_t>{0, 1, 2}}});
  EXPECT_EQ(y.values(), (std::vector<double>{4, 3, 0, 0, 6, 5}));
}

TEST(LabelEncode, KeysOfEveryKind) {
  const auto keys = TestTensor::texts({3}, {"a", "b", "c"});
  const auto x = TestTensor::texts({5}, {"a", "b", "d", "c", ""});
  const TestTensor values(DType::kI16, {3}, {0, 1, 2}), other(DType::kI16, {1}, {42});
  EXPECT_EQ(run_reference("label_encode", {x, keys, values, other}).values(),
            (std::vector<double>{0, 1, 42, 2, 42}));
  const TestTensor floats(DType::kF32, {3}, {NAN, 0.5, -0.0});
  EXPECT_EQ(run_reference("label_encode", {TestTensor(DType::kF32, {4}, {0, NAN, 0.5, 7}), floats,
                                           keys, TestTensor::texts({}, {"?"})})
                .texts(),
            (Texts{"c", "a", "b", "?"}));
}

}  // namespace
}  // namespace anymps::testing
