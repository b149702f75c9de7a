"""Where words begin in Thai, which puts no blanks between them: AttaCut's network on characters.

    pip install --no-deps attacut ssg && pip install python-crfsuite pyyaml localsmooth
    python examples/gallery/word_boundaries.py
    localsmooth certify examples/gallery/word_boundaries.toml --out runs/gallery/word_boundaries/run

This file embeds sentences with the package's own table of characters, and has the modules that the TOML file may name:
the package's network from embeddings on, alone or behind a denoiser that knows the table. A character is a token; what
is perturbed are embeddings. Nothing is downloaded.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attacut.artifacts import get_path
from attacut.dataloaders import CharacterSeqDataset
from attacut.models import get_model
from attacut.utils import load_training_params
from jaxtyping import Float
from torch import nn

SIGMA = 1.5  # the denoiser's: the level in the TOML file
FIRST = -1  # label of a text's first character, where a word begins anyway
FOLDER = Path(__file__).parents[2] / "runs" / "gallery" / "word_boundaries"
TEXTS = [  # four sentences each, with blanks between them and | between words; the first two are for calibration
    "ใคร|เห็น|กุญแจ|ของ|ผม|บ้าง| |น้อง|อยาก|กิน|ขนม|หวาน|มาก| |ร้าน|นี้|ขาย|กาแฟ|ดี|และ|ขนมปัง|สด| |พรุ่งนี้|มี|ประชุม|ตอน|เก้า|โมง",
    "เด็ก|ตา|กลม|ยิ้ม|ให้|เรา| |ลม|เย็น|พัด|มา|จาก|ภูเขา| |หมา|ตัว|เล็ก|นอน|ใต้|โต๊ะ|ทั้ง|วัน| |ฉัน|รัก|อาหาร|ไทย|เพราะ|อร่อย|และ|ถูก",
    "รถ|ติด|มาก|ใน|เมือง|ตอน|เย็น| |ตา|กับ|ยาย|ปลูก|ข้าว|บน|ภูเขา| |แม่|ซื้อ|ปลา|กับ|ผัก|ที่|ตลาด| |เขา|อ่าน|หนังสือ|ทุก|คืน|ก่อน|นอน",
    "เพื่อน|ของ|ฉัน|ทำงาน|ที่|ธนาคาร| |ครู|สอน|ภาษา|อังกฤษ|ใน|ห้อง|ใหญ่| |พ่อ|ทำ|แกง|ให้|ลูก|กิน| |นก|ร้อง|อยู่|บน|ต้นไม้|หลัง|บ้าน",
    "แมว|สี|ดำ|จับ|หนู|ได้|แล้ว| |เรือ|ลำ|ใหญ่|แล่น|ไป|ตาม|ทะเล| "
    "|เขา|นั่ง|ตาก|ลม|อยู่|ริม|ทะเล| |ฝน|ตก|หนัก|จน|เรา|ออก|จาก|บ้าน|ไม่|ได้",
    "หมอ|บอก|ว่า|ต้อง|พัก|สาม|วัน| |กรุงเทพ|ร้อน|ตลอด|ปี| |เด็ก|สอง|คน|วิ่ง|เล่น|อยู่|ใน|สวน| |ปี|หน้า|เรา|จะ|ย้าย|ไป|อยู่|เชียงใหม่",
]


class Boundaries(nn.Module):
    """The package's network behind its table of embeddings: scores of going on with a word and of beginning one."""

    def __init__(self) -> None:
        super().__init__()
        folder, self.characters = Path(get_path("attacut-c")), CharacterSeqDataset()
        known = load_training_params(str(folder))
        network: Any = get_model(known.name)(self.characters.setup_featurizer(str(folder)), known.params)
        network.load_state_dict(torch.load(folder / "model.pth", "cpu", weights_only=True))
        self.embedding = network.embeddings
        network.embeddings = nn.Identity()  # it is given what the table would return
        self.network = network

    def forward(
        self, inputs_embeds: Float[torch.Tensor, "batch tokens features"]
    ) -> Float[torch.Tensor, "batch tokens 2"]:
        """Score both classes of every character: 0 and the network's own logit."""
        scores = self.network((inputs_embeds, None)).view(inputs_embeds.shape[:2])
        return torch.stack([torch.zeros_like(scores), scores], dim=-1)

    def embed(self, text: str) -> Float[torch.Tensor, "tokens features"]:
        """Embeddings of a text's characters."""
        numbers = self.characters.make_feature(text)[1][0][0]
        return self.embedding(numbers).detach()


class Denoised(nn.Module):
    """The network behind the mean of what a noisy embedding may have been, all characters being as likely."""

    def __init__(self, sigma: float) -> None:
        super().__init__()
        self.tagger, self.sigma = Boundaries(), sigma

    def forward(
        self, inputs_embeds: Float[torch.Tensor, "batch tokens features"]
    ) -> Float[torch.Tensor, "batch tokens 2"]:
        """Score what is left of every embedding without the noise."""
        table = self.tagger.embedding.weight[1:]  # the first is no character, but stands for none
        closeness = (inputs_embeds @ table.T - table.square().sum(1) / 2) / self.sigma**2
        return self.tagger(closeness.softmax(-1) @ table)


def tagger() -> Boundaries:
    """The package's network."""
    return Boundaries().eval()


def denoised() -> Denoised:
    """The network behind a denoiser for the level of noise in the TOML file."""
    return Denoised(SIGMA).eval()


def shown(character: str) -> str:
    """A name for a character: blanks can be seen, and what stands above or below a letter gets a circle to stand on."""
    if character == " ":
        return "␣"
    return f"◌{character}" if unicodedata.category(character) == "Mn" else character


def beginnings(text: str) -> list[int]:
    """1 where a word begins and 0 where it goes on, for every character of a text with | between words."""
    words = [[1, *[0] * (len(word) - 1)] for word in text.split("|")]
    return [FIRST, *[label for word in words for label in word][1:]]


def main() -> None:
    """Write the texts, embedded, their labels and their characters."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    model = tagger()
    plain = [text.replace("|", "") for text in TEXTS]
    tokens = torch.stack([model.embed(text) for text in plain])
    labels = np.array([beginnings(text) for text in TEXTS])
    np.savez(FOLDER / "texts.npz", tokens=tokens.numpy(), labels=labels)
    np.save(FOLDER / "calibration.npy", tokens[:2].mT.numpy())  # features first, as `kind = "arrays"` has them
    np.save(FOLDER / "calibration_labels.npy", labels[:2])
    (FOLDER / "characters.txt").write_text("\n".join(" ".join(map(shown, text)) for text in plain), encoding="utf-8")
    with torch.inference_mode():
        found = model(tokens).argmax(-1).numpy()
    for text, one, label in zip(plain, found, labels, strict=True):
        print(f"{len(text)} characters, {np.mean(one[1:] == label[1:]):.1%} as written")
    apart = torch.cdist(tokens.flatten(0, 1), model.embedding.weight[1:].detach())
    print(f"Nearest other character to one of these: {apart[apart > 0.1].min():.2f}")


if __name__ == "__main__":
    main()
