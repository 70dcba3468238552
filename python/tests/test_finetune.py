# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a language model and a dataset to an adapter; skipped where a package is missing."""

import copy
import json

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

import ckopt  # noqa: E402
import ckopt.torch  # noqa: E402
from ckopt import _ckopt  # noqa: E402

SETTINGS = dict(threads=2, effort=0)


@pytest.fixture(scope="module")
def base():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32)).eval()


def samples(count=12, longest=16):
    """Tokens that count up, rows of several lengths; the first two tokens are no targets."""
    random = numpy.random.default_rng(0)
    rows = []
    for _ in range(count):
        length = int(random.integers(5, longest + 1))
        ids = ((int(random.integers(96)) + 3 * numpy.arange(length)) % 96).tolist()
        rows.append({"input_ids": ids, "labels": [-100, -100, *ids[2:]], "text": "not read"})
    rows[0] = {"input_ids": [*range(longest)], "labels": [*range(longest)], "text": ""}
    return rows


def padded(rows, length=16):
    ids, labels = torch.zeros(len(rows), length, dtype=torch.int64), torch.full((len(rows), length), -100)
    for i, row in enumerate(rows):
        ids[i, :len(row["input_ids"])] = torch.tensor(row["input_ids"])
        labels[i, :len(row["input_ids"])] = torch.tensor(row["labels"])
    return ids, labels


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=ids).logits.float()


def test_an_adapter_is_trained_as_in_pytorch_and_loaded_by_peft(base, tmp_path):
    """Losses are those of PEFT's model with PyTorch's AdamW; the files give its logits."""
    rows = samples()
    tuned = ckopt.torch.finetune(copy.deepcopy(base), rows, tmp_path / "adapter", batch=4, epochs=3,
                                 lora=ckopt.LoRA(4, alpha=8), seed=7,
                                 optimizer=ckopt.AdamW(lr=1e-2), **SETTINGS)
    assert len(tuned.losses) == tuned.step.updates == 9
    assert not tuned.model.training and tuned.step.inputs["input_ids"] == ("int64", (16,))
    torch.manual_seed(7)
    peer = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(
        r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([p for p in peer.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for epoch in range(3):
        order = _ckopt.epoch_order(len(rows), 7, epoch)
        for start in range(0, len(rows), 4):
            ids, labels = padded([rows[i] for i in order[start:start + 4]])
            loss = peer(input_ids=ids, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    numpy.testing.assert_allclose(tuned.losses, losses, rtol=2e-4)
    assert losses[-1] < losses[0]
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(base), str(tmp_path / "adapter"))
    ids = padded(rows[:3])[0]
    assert torch.equal(logits(loaded, ids), logits(tuned.model, ids))
    assert not torch.allclose(logits(loaded, ids), logits(base, ids), atol=1e-2)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["r"] == 4 and config["lora_alpha"] == 8 and config["task_type"] == "CAUSAL_LM"


def test_a_run_goes_on_within_an_epoch(base, tmp_path):
    """With the bits of an unbroken one, and with samples held out."""
    settings = dict(batch=2, epochs=2, holdout=0.2, seed=3, lora=ckopt.LoRA(2, targets="q_proj"),
                    optimizer=ckopt.AdamW(lr=1e-2), **SETTINGS)
    whole = ckopt.torch.finetune(copy.deepcopy(base), samples(20), **settings)
    ckopt.torch.finetune(copy.deepcopy(base), samples(20), max_steps=11, **settings,
                         checkpoint=tmp_path / "run.ckpt")
    rest = ckopt.torch.finetune(copy.deepcopy(base), samples(20), **settings,
                                resume=tmp_path / "run.ckpt")
    assert rest.losses == whole.losses[11:] and len(whole.losses) == 16
    assert rest.result.validation == whole.result.validation
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, rest.model.state_dict()[name]), name


@pytest.mark.parametrize("kind", [None, "bf16", "int4"])
def test_checkpoints_leave_out_the_base(base, tmp_path, kind):
    """They hold adapters, states and averages, 16 bytes a number; a run goes on with its bits."""
    settings = dict(batch=2, epochs=2, base=kind, lora=ckopt.LoRA(2, targets="q_proj"),
                    optimizer=ckopt.AdamW(lr=1e-2, ema=0.9), **SETTINGS)
    path, rows = tmp_path / "run.ckpt", samples(8)
    whole = ckopt.torch.finetune(copy.deepcopy(base), rows, **settings)
    ckopt.torch.finetune(copy.deepcopy(base), rows, max_steps=5, checkpoint=path, **settings)
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    about = json.loads(raw[8:8 + size]).pop("__metadata__")
    trained = sum(p.numel() for p in whole.model.parameters() if p.requires_grad)
    assert len(raw) - 8 - size == 16 * trained
    assert any("embed_tokens" in key and key.split(".")[1] in ("frozen", "constant") for key in about)
    rest = ckopt.torch.finetune(copy.deepcopy(base), rows, resume=path, budget="min", **settings)
    assert rest.losses == whole.losses[5:] and len(whole.losses) == 8
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, rest.model.state_dict()[name]), name
    other = copy.deepcopy(base)
    with torch.no_grad():
        other.model.layers[1].mlp.up_proj.weight[-1] *= 2
    with pytest.raises(ckopt.InputError, match="frozen weight '.*up_proj.*' has other values"):
        ckopt.torch.finetune(other, rows, resume=path, **settings)


@pytest.mark.parametrize("kind", ["bf16", "int8", "int4"])
def test_a_base_in_few_bits(base, tmp_path, kind):
    """The adapter is that of the base as it is stored; a model of PEFT's is taken, too."""
    model = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(
        r=4, target_modules=["q_proj", "up_proj"], task_type="CAUSAL_LM"))
    tuned = ckopt.torch.finetune(model, samples(), str(tmp_path), base=kind, batch=2, max_steps=3,
                                 budget="min", optimizer=ckopt.AdamW(lr=1e-2), **SETTINGS)
    assert len(tuned.losses) == 3 and tuned.model is model
    stored = copy.deepcopy(base)
    if kind == "bf16":
        stored = stored.to(torch.bfloat16)
    loaded = peft.PeftModel.from_pretrained(stored, str(tmp_path), is_trainable=True)
    if kind != "bf16":
        ckopt.torch.quantize_base(loaded, kind)
    ids = padded(samples()[:2])[0]
    torch.testing.assert_close(logits(loaded, ids), logits(tuned.model, ids), rtol=0.02, atol=0.02)
    plain = ckopt.torch.finetune(copy.deepcopy(base), samples(), batch=2, max_steps=1,
                                 lora=ckopt.LoRA(4, targets="q_proj|up_proj"), **SETTINGS)
    assert tuned.step.memory["data_bytes"] >= 0 and \
        tuned.step.memory["planned_peak_bytes"] < plain.step.memory["planned_peak_bytes"]


def test_packed_rows_of_a_dataset_and_of_a_stream(base, tmp_path):
    """Full rows, no padding; a stream is read in its order, an iterator once."""
    datasets = pytest.importorskip("datasets")
    rows = samples(20)
    data = datasets.Dataset.from_list([{name: row[name] for name in ("input_ids", "labels")}
                                       for row in rows])
    every = [token for row in rows for token in row["input_ids"]]
    settings = dict(sequence=8, pack=True, batch=2, lora=ckopt.LoRA(2, targets="q_proj"), **SETTINGS)
    tuned = ckopt.torch.finetune(copy.deepcopy(base), data, **settings)
    assert tuned.result.steps == len(every) // 8 // 2 and tuned.folder is None
    order = [row["input_ids"].tolist() for row in ckopt._finetune._packed(rows, 8)]
    assert [token for row in order for token in row] == every[:len(every) // 8 * 8]
    stream = ckopt.torch.finetune(copy.deepcopy(base), lambda: iter(rows), max_steps=30, epochs=9,
                                  **settings)
    assert stream.result.steps == 30
    with pytest.raises(ckopt.InputError, match="read but once"):
        ckopt.torch.finetune(copy.deepcopy(base), iter(rows), epochs=2, **settings)
    masked = [{"input_ids": [0, 0, 5, 6, 7], "attention_mask": [0, 0, 1, 1, 1]}] * 2
    left = ckopt._finetune._Rows(masked, 4, 9)[1]
    assert left["input_ids"].tolist() == [5, 6, 7, 9] and left["labels"].tolist() == [5, 6, 7, -100]


class Scores(torch.nn.Module):
    """A language model that nobody's library knows."""

    def __init__(self):
        super().__init__()
        self.table, self.out = torch.nn.Embedding(96, 16), torch.nn.Linear(16, 96)

    def forward(self, input_ids):
        return self.out(self.table(input_ids))


def test_any_module_with_a_loss(tmp_path):
    def following(scores, labels):
        return torch.nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    torch.manual_seed(0)
    model, rows = Scores(), samples()
    tuned = ckopt.torch.finetune(model, rows, tmp_path, batch=3, loss=following, epochs=6,
                                 validation=rows[:6], optimizer=ckopt.AdamW(lr=0.05), **SETTINGS)
    assert tuned.losses[-1] < 0.7 * tuned.losses[0] and tuned.result.validation["loss"] > 0
    from safetensors.torch import load_file
    state = load_file(tmp_path / "model.safetensors")
    assert {name.removeprefix("model.") for name in state} == set(model.state_dict())
    adapted = ckopt.torch.finetune(Scores(), rows, tmp_path, batch=3, loss=following,
                                   lora=ckopt.LoRA(2, targets="out"), **SETTINGS)
    assert (tmp_path / "adapter_model.safetensors").exists()
    assert sorted(name for name, p in adapted.model.named_parameters() if p.requires_grad) == [
        "base_model.model.out.lora_A.default.weight", "base_model.model.out.lora_B.default.weight"]


def test_what_cannot_be_is_said(base):
    rows = samples()
    for settings, data, kind, said in (
            (dict(sequence=8), rows, ckopt.InputError, "sample 0 has 16 tokens, more than sequence=8"),
            (dict(), iter(rows), ckopt.UsageError, "sequence="),
            (dict(), [{"text": "a"}], ckopt.InputError, "no 'input_ids', but text: tokenize"),
            (dict(), [{"input_ids": [[1, 2]]}], ckopt.InputError, "rows of as many integers"),
            (dict(base="int4"), rows, ckopt.InputError, "freeze the base first"),
            (dict(base="bf16"), rows, ckopt.InputError, "nothing is frozen"),
            (dict(sequence=8), 3, ckopt.UsageError, "a dataset is a list"),
            (dict(), [], ckopt.InputError, "has no samples"),
            (dict(), "rows.txt", ckopt.UsageError, "not the name 'rows.txt' of a file"),
            (dict(), [{"input_ids": [1, 10**6]}], ckopt.InputError, "sample 0 has the token 1000000"),
            (dict(sequence=999, pack=True), rows, ckopt.InputError, "do not fill one row of 999")):
        with pytest.raises(kind, match=said):
            ckopt.torch.finetune(copy.deepcopy(base), data, **settings, **SETTINGS)
    with pytest.raises(ckopt.UsageError, match="LoRA.targets"):
        ckopt.torch.finetune(Scores(), rows, lora=ckopt.LoRA(2))


def test_a_model_of_transformers_by_itself(base, tmp_path):
    """Its cache of keys and values is no tensor, and the error says whose setting it is."""
    model = copy.deepcopy(base).train()
    ids, labels = padded(samples()[:2])
    inputs = {"input_ids": ids, "labels": labels}
    with pytest.raises(ckopt.UnsupportedError, match="LlamaForCausalLM returns a cache of keys and "
                       "values, since its config.use_cache is True: set model.config.use_cache"):
        ckopt.torch.compile_step(model, inputs, **SETTINGS)
    model.config.use_cache = False
    step = ckopt.torch.compile_step(model, inputs, optimizer=ckopt.SGD(lr=0.1), **SETTINGS)
    expected = model(**inputs).loss.item()
    assert step(inputs) == pytest.approx(expected, rel=1e-5) and step(inputs) < expected
    assert step.sync() is model and model(**inputs).loss.item() < expected
    (numpy.arange(320, dtype="u2") % 96).tofile(tmp_path / "text.bin")
    tokens = ckopt.Tokens(tmp_path / "text.bin", sequence=16)
    with pytest.raises(ckopt.UsageError, match="inputs=.input_ids=tokens,labels=tokens"):
        step.fit(tokens)
    again = ckopt.torch.compile_step(model, inputs, inputs="input_ids=tokens,labels=tokens",
                                     **SETTINGS)
    assert again.fit(tokens, max_steps=2).steps == 2
