# SPDX-License-Identifier: Apache-2.0
"""BERT's tokenizer: words and punctuation, then the longest pieces of each word that the vocabulary has."""
import unicodedata

LONGEST_WORD = 100


def is_cjk(char):
    return any(low <= ord(char) <= high for low, high in
               ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


def is_punctuation(char):
    return unicodedata.category(char).startswith("P") or char in "$+<=>^`|~"


def words_of(text):
    """Lower case, without accents; punctuation and Chinese characters are words of their own."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFC", text).lower())
    spaced = []
    for char in text:
        kind = unicodedata.category(char)
        if kind == "Mn" or char in "\0\ufffd" or (kind in ("Cc", "Cf") and char not in "\t\n\r"):
            continue
        spaced.append(f" {char} " if is_cjk(char) or is_punctuation(char) else char)
    return "".join(spaced).split()


class WordPiece:
    def __init__(self, vocabulary):
        with open(vocabulary, encoding="utf-8") as file:
            self.ids = {line.rstrip("\n"): i for i, line in enumerate(file)}
        self.unknown, self.first, self.last = (self.ids[f"[{name}]"] for name in ("UNK", "CLS", "SEP"))

    def pieces(self, word):
        """The ids of a word: '##' marks pieces that do not start it. One unknown part makes the word unknown."""
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    break
            else:
                return [self.unknown]
            found.append(self.ids[piece])
            start = end
        return found

    def __call__(self, text, longest=256):
        ids = [i for word in words_of(text) for i in self.pieces(word)]
        return [self.first, *ids[:longest - 2], self.last]
