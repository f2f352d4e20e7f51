"""Tiny models made from a config, tiny data, and a hook that writes down what the model saw in training."""

import datasets
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)

from tests.adapters.torch_support import BATCH, NUM_SAMPLES
from undermargin import IndexedDataset

NUM_WORDS, NUM_CLASSES = 40, 3
NAMES = {0: "sports", 1: "science", 2: "politics", 3: "extra"}


def generator():
    return torch.Generator().manual_seed(5)


def sentences():
    """Different sentences of 3 to 8 words."""
    lengths = torch.randint(3, 9, (NUM_SAMPLES,), generator=generator()).tolist()
    words = torch.randint(1, NUM_WORDS, (NUM_SAMPLES, 8), generator=generator()).tolist()
    return [row[:length] for row, length in zip(words, lengths, strict=True)]


def labels():
    return [(3 * index // 7) % NUM_CLASSES for index in range(NUM_SAMPLES)]


def token_labels():
    """A label for each word; some are ignored, in one sentence all but one."""
    found = [[word % NUM_CLASSES if word % 5 else -100 for word in sentence] for sentence in sentences()]
    found[4] = [-100] * (len(found[4]) - 1) + [2]
    return found


def texts(*, with_index=True):
    """A data set as `datasets` has it, with a column that the model does not take."""
    columns = {"input_ids": sentences(), "label": labels(), "source": ["web"] * NUM_SAMPLES}
    return datasets.Dataset.from_dict(columns | ({"index": list(range(NUM_SAMPLES))} if with_index else {}))


def images():
    """Mappings of pixels and a label, through the view that adds the index."""
    pixels = torch.rand(NUM_SAMPLES, 1, 8, 8, generator=generator())
    return IndexedDataset([{"pixel_values": x, "labels": y} for x, y in zip(pixels, labels(), strict=True)])


def tagged(given):
    """Sentences with a label for each token."""
    rows = zip(sentences(), given, strict=True)
    return IndexedDataset([{"input_ids": words, "labels": one} for words, one in rows])


def tokenizer(side="right"):
    vocabulary = {"[PAD]": 0} | {f"w{number}": number for number in range(1, NUM_WORDS)}
    words = Tokenizer(WordLevel(vocabulary, unk_token="[PAD]"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", padding_side=side)


def bert(kind=BertForSequenceClassification, **options):
    set_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=NUM_WORDS, max_position_embeddings=16, id2label=NAMES, **size, **options)
    return kind(config)


def vit():
    set_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, num_channels=1, id2label=NAMES, **size))


def make_trainer(folder, model, data, *, batch_size=BATCH, collator=None, evaluated=None, **options):
    arguments = {
        "num_train_epochs": 3,
        "learning_rate": 5e-3,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
    }
    return Trainer(
        model,
        TrainingArguments(str(folder), per_device_train_batch_size=batch_size, **arguments | options),
        train_dataset=data,
        eval_dataset=evaluated,
        data_collator=collator,
    )


def text_trainer(folder, *, data=None, **options):
    data = texts() if data is None else data
    return make_trainer(folder, bert(), data, collator=DataCollatorWithPadding(tokenizer()), **options)


def tag_trainer(folder, given, *, side="right", **options):
    collator = DataCollatorForTokenClassification(tokenizer(side))
    return make_trainer(folder, bert(BertForTokenClassification), tagged(given), collator=collator, **options)


def record(trainer):
    """Rows of epoch, index, label and logits, for each training step; samples are known by their content."""
    rows, of_texts = [], {tuple(words): index for index, words in enumerate(sentences())}
    of_images = {tuple(one["pixel_values"].flatten().tolist()): one["index"] for one in images()}

    def hook(model, inputs, named, output):
        if not model.training:
            return
        epoch = int(trainer.state.epoch or 0)
        if "pixel_values" in named:
            indices = [of_images[tuple(one.flatten().tolist())] for one in named["pixel_values"]]
        else:
            indices = [of_texts[tuple(one[one > 0].tolist())] for one in named["input_ids"]]
        for row, (index, logits) in enumerate(zip(indices, output.logits.detach().double().tolist(), strict=True)):
            rows.append((epoch, index, named["labels"][row].tolist() if "labels" in named else labels()[index], logits))

    trainer.model.register_forward_hook(hook, with_kwargs=True)
    return rows
