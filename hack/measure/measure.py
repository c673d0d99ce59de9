#!/usr/bin/env python3
"""Measures what models take of a real GPU, to hold the estimates against.

    measure.py FOLDER

builds models of known shapes with random weights (nothing is downloaded), runs
a prompt and a few tokens through each, and writes to FOLDER:

    measured.json  one entry per model, context and number of sequences
    models.tar     <model>/config.json and <model>/model.safetensors (header only)

It needs torch and transformers, a CUDA device of 80 GiB or more (models that do
not fit are reported as failed), and about four minutes.

What is built to be like an inference server: the cache is allocated once for the
whole context, prompts go through in steps of 2,048 or 8,192 tokens over all
sequences or as a whole, logits are made for the last token of each sequence only,
and attention reads the cache where it lies: no mask, no repeated key heads.
Encoders process all sequences at once. At last several models run on the device at
the same time, each in a process of its own:

    measure.py --hold MODEL CONTEXT   runs one model and waits until it is killed
    measure.py --together             only runs several models at the same time
"""

import gc
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import time
import traceback

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

DECODE = 16
SECONDS = 420  # no new case is begun after this


def used_by_others():
    """MiB in use on the device before this process touches it; None: no nvidia-smi."""
    try:
        out = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=30, check=True).stdout
        return int(out.split()[0])
    except Exception:
        return None


IDLE = used_by_others()

import torch
import torch.nn.functional as F
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.cache_utils import DynamicCache, StaticCache

# How many tokens of each sequence the cache holds once the step under way is done.
END = 0


def lean(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
    """Flash attention over the part of the cache that is filled, aligned to its end.

    A sliding window is not cut here: the cache of such a layer is already no longer
    than the window and one step, and the kernel's memory does not depend on it.
    """
    filled = min(key.shape[2], max(END, query.shape[2]))
    key, value = key[:, :, :filled], value[:, :, :filled]
    width = value.shape[-1]
    if width != key.shape[-1]:
        value = F.pad(value, (0, key.shape[-1] - width))
    out = torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, 0.0, query.shape[2] > 1, False, scale=scaling)[0]
    return out[..., :width].transpose(1, 2).contiguous(), None


def register():
    try:
        from transformers import AttentionInterface
        AttentionInterface.register("lean", lean)
    except ImportError:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
        ALL_ATTENTION_FUNCTIONS.register("lean", lean)


def llama(layers, hidden, mlp, heads, kv, head_dim, tied, vocab=128256):
    return dict(model_type="llama", num_hidden_layers=layers, hidden_size=hidden, intermediate_size=mlp,
                num_attention_heads=heads, num_key_value_heads=kv, head_dim=head_dim, vocab_size=vocab,
                tie_word_embeddings=tied, max_position_embeddings=131072)


def qwen2(layers, hidden, mlp, heads, kv, tied=False):
    return dict(model_type="qwen2", num_hidden_layers=layers, hidden_size=hidden, intermediate_size=mlp,
                num_attention_heads=heads, num_key_value_heads=kv, vocab_size=152064,
                tie_word_embeddings=tied, max_position_embeddings=131072)


def gemma3(layers, hidden, mlp, heads, kv, window=1024):
    kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(layers)]
    return dict(model_type="gemma3_text", num_hidden_layers=layers, hidden_size=hidden, intermediate_size=mlp,
                num_attention_heads=heads, num_key_value_heads=kv, head_dim=256, vocab_size=262208,
                sliding_window=window, layer_types=kinds, tie_word_embeddings=True,
                max_position_embeddings=131072)


# A case is (context, sequences, tokens of one step); the step is 2,048 unless given, and
# 0 for the whole prompt.
# name: (configuration, [case, …])
MODELS = {
    "llama-1b-tied": (llama(16, 2048, 8192, 32, 8, 64, True), [(2048, 1), (8192, 1), (8192, 1, 8192), (32768, 1, 0)]),
    "llama-3b-tied": (llama(28, 3072, 8192, 24, 8, 128, True), [(2048, 1), (8192, 1), (32768, 1), (32768, 1, 8192)]),
    "llama-8b": (llama(32, 4096, 14336, 32, 8, 128, False), [(2048, 1), (8192, 1), (32768, 1), (8192, 4), (32768, 1, 8192), (32768, 1, 0)]),
    "qwen-14b": (qwen2(48, 5120, 13824, 40, 8), [(2048, 1), (8192, 1), (32768, 1), (8192, 4), (32768, 1, 8192)]),
    "qwen-32b": (qwen2(64, 5120, 27648, 40, 8), [(2048, 1), (8192, 1), (32768, 1), (8192, 4), (32768, 1, 8192), (32768, 1, 0)]),
    "phi-4": (
        dict(model_type="phi3", num_hidden_layers=40, hidden_size=5120, intermediate_size=17920,
             num_attention_heads=40, num_key_value_heads=10, vocab_size=100352, tie_word_embeddings=False,
             sliding_window=None, max_position_embeddings=16384, pad_token_id=0),
        [(2048, 1), (16384, 1, 2048), (16384, 1, 8192), (16384, 1, 0)]),
    "gemma-4b": (gemma3(34, 2560, 10240, 8, 4), [(2048, 1), (8192, 1), (32768, 1), (8192, 4), (32768, 1, 8192)]),
    "gemma-12b": (gemma3(48, 3840, 15360, 16, 8), [(2048, 1), (8192, 1), (32768, 1), (32768, 1, 8192)]),
    "gemma-2-9b": (
        dict(model_type="gemma2", num_hidden_layers=42, hidden_size=3584, intermediate_size=14336,
             num_attention_heads=16, num_key_value_heads=8, head_dim=256, vocab_size=256000,
             sliding_window=4096, tie_word_embeddings=True, max_position_embeddings=8192),
        [(2048, 1), (8192, 1), (8192, 1, 8192), (8192, 4, 8192)]),
    "granite-hybrid-20-layers": (
        dict(model_type="granitemoehybrid", num_hidden_layers=20, hidden_size=2048, intermediate_size=512,
             num_attention_heads=16, num_key_value_heads=4, vocab_size=100352, num_local_experts=0,
             num_experts_per_tok=0, shared_intermediate_size=8192, tie_word_embeddings=True,
             layer_types=["attention" if i % 10 == 5 else "mamba" for i in range(20)],
             mamba_n_heads=64, mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_expand=2,
             mamba_d_conv=4, position_embedding_type="nope", max_position_embeddings=131072),
        [(2048, 1), (8192, 1)]),
    "qwen3-next-8-layers": (
        dict(model_type="qwen3_next", num_hidden_layers=8, hidden_size=2048, intermediate_size=5120,
             moe_intermediate_size=512, shared_expert_intermediate_size=512, num_experts=64,
             num_experts_per_tok=10, num_attention_heads=16, num_key_value_heads=2, head_dim=256,
             linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128,
             linear_value_head_dim=128, linear_conv_kernel_dim=4, vocab_size=151936,
             tie_word_embeddings=False, max_position_embeddings=262144),
        [(2048, 1), (8192, 1)]),
    "bert-large": (
        dict(model_type="bert", num_hidden_layers=24, hidden_size=1024, intermediate_size=4096,
             num_attention_heads=16, vocab_size=30522, max_position_embeddings=512),
        [(512, 4, 0), (512, 16, 0), (512, 64, 0)]),
    "modernbert-large": (
        dict(model_type="modernbert", num_hidden_layers=28, hidden_size=1024, intermediate_size=2624,
             num_attention_heads=16, vocab_size=50368, max_position_embeddings=8192,
             reference_compile=False),
        [(8192, 1, 0), (8192, 4, 0)]),
    "mixtral-6-layers": (
        dict(model_type="mixtral", num_hidden_layers=6, hidden_size=4096, intermediate_size=14336,
             num_attention_heads=32, num_key_value_heads=8, head_dim=128, num_local_experts=8,
             num_experts_per_tok=2, vocab_size=32000, sliding_window=None, tie_word_embeddings=False,
             max_position_embeddings=32768),
        [(2048, 1), (8192, 1)]),
    "qwen3-moe-24-layers": (
        dict(model_type="qwen3_moe", num_hidden_layers=24, hidden_size=2048, intermediate_size=6144,
             moe_intermediate_size=768, num_experts=64, num_experts_per_tok=8, num_attention_heads=32,
             num_key_value_heads=4, head_dim=128, vocab_size=151936, tie_word_embeddings=False,
             decoder_sparse_step=1, mlp_only_layers=[], max_position_embeddings=40960),
        [(2048, 1), (8192, 1), (32768, 1)]),
    # Caches the latent from transformers 5 on; older ones cache expanded keys and
    # values, and their cache says nothing of the latent's.
    "mla-10-layers": (
        dict(model_type="deepseek_v3", num_hidden_layers=10, hidden_size=2048, intermediate_size=10944,
             moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
             first_k_dense_replace=1, n_group=8, topk_group=4, num_attention_heads=16,
             num_key_value_heads=16, kv_lora_rank=512, q_lora_rank=None, qk_rope_head_dim=64,
             qk_nope_head_dim=128, v_head_dim=128, vocab_size=102400, tie_word_embeddings=False,
             max_position_embeddings=163840),
        [(2048, 1), (8192, 1)]),
}


# The models, with their contexts, that run at the same time.
TOGETHER = [("llama-1b-tied", 8192), ("llama-3b-tied", 8192), ("llama-1b-tied", 8192)]

ENCODERS = ("bert", "modernbert")

# Models with states have caches of their own and are measured with them.
HYBRID = ("granitemoehybrid", "qwen3_next")


def configuration(fields):
    fields = dict(fields)
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


def build(config):
    """The model on the device with random weights."""
    kind = AutoModel if config.model_type in ENCODERS else AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    model.to(torch.bfloat16)
    model.to_empty(device="cuda")
    model.tie_weights()
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.02)
        for b in model.buffers():
            b.fill_(1)
    model.eval()
    return model


def tidy():
    gc.collect()
    try:
        torch._C._cuda_clearCublasWorkspaces()
    except AttributeError:
        pass
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def device_used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def header(model):
    """The safetensors header of the model's weights; tied weights are written once."""
    names = {torch.bfloat16: ("BF16", 2), torch.float32: ("F32", 4), torch.float16: ("F16", 2), torch.int64: ("I64", 8)}
    seen, at, out = set(), 0, {"__metadata__": {"format": "pt"}}
    for name, t in model.state_dict().items():
        if t.data_ptr() in seen and t.numel() > 0:
            continue
        seen.add(t.data_ptr())
        dtype, size = names[t.dtype]
        end = at + t.numel() * size
        out[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(out, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def ways(config, length):
    """Attention and cache, the ones most like a server's first."""
    if config.model_type in ENCODERS:
        yield "sdpa", "none", lambda: None
        return
    if config.model_type in HYBRID:
        yield "lean", "dynamic", lambda: DynamicCache(config=config)
        yield "sdpa", "dynamic", lambda: DynamicCache(config=config)
        yield "sdpa", "own", lambda: None
        return
    yield "lean", "static", lambda: StaticCache(config=config, max_cache_len=length)
    yield "lean", "dynamic", lambda: DynamicCache(config=config)
    yield "sdpa", "static", lambda: StaticCache(config=config, max_cache_len=length)
    yield "sdpa", "dynamic", lambda: DynamicCache()


def ahead(config, cache, sequences):
    """Allocates the cache before the first step, as a server does; otherwise layer
    after layer takes its part in the middle of it, and tears gaps. A latent is left
    to be allocated late: its size is not that of the heads."""
    if getattr(config, "kv_lora_rank", None) or config.model_type in HYBRID or not hasattr(cache, "early_initialization"):
        return False
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    cache.early_initialization(sequences, config.num_key_value_heads, head, torch.bfloat16, torch.device("cuda"))
    torch.cuda.synchronize()
    return True


def run(model, cache, context, sequences, step):
    """Fills the context but for the last tokens, which are decoded one by one."""
    global END
    after_cache = None
    prompt, done = context - DECODE, 0
    ids = torch.randint(0, 1000, (sequences, context), device="cuda")
    if model.config.model_type in ENCODERS:
        model(input_ids=ids)
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()
    while done < context:
        n = min(step // sequences, prompt - done) if done < prompt else 1
        END = done + n
        out = model(input_ids=ids[:, done:END], past_key_values=cache, use_cache=True, logits_to_keep=1)
        assert out.logits.shape[1] == 1, out.logits.shape
        cache = out.past_key_values
        del out
        done = END
        if after_cache is None:
            torch.cuda.synchronize()
            after_cache = torch.cuda.memory_allocated()
    torch.cuda.synchronize()
    return after_cache


def cache_bytes(cache):
    """The bytes of all tensors of the cache, whatever its layers call them."""
    total, seen = 0, set()

    def visit(x):
        nonlocal total
        if isinstance(x, torch.Tensor):
            if x.data_ptr() not in seen and x.is_cuda:
                seen.add(x.data_ptr())
                total += x.numel() * x.element_size()
        elif isinstance(x, (list, tuple)):
            for y in x:
                visit(y)
        elif isinstance(x, dict):
            visit(list(x.values()))

    if cache is not None:
        for layer in getattr(cache, "layers", []):
            visit(vars(layer))
        visit({k: v for k, v in vars(cache).items() if k != "layers"})
    return total


def measure(name, model, context, sequences, step=2048):
    failed = []
    step = step or context * sequences
    for attention, kind, make in ways(model.config, context):
        tidy()
        torch.cuda.reset_peak_memory_stats()
        entry = {
            "model": name, "context": context, "sequences": sequences, "batchTokens": step,
            "attention": attention, "cache": kind, "weights": torch.cuda.memory_allocated(),
        }
        cache, started = None, time.time()
        try:
            model.set_attn_implementation(attention)
            with torch.no_grad():
                cache = make()
                entry["allocatedAhead"] = ahead(model.config, cache, sequences)
                entry["afterFirstStep"] = run(model, cache, context, sequences, step)
            entry["cacheBytes"] = cache_bytes(cache)
            entry["peakAllocated"] = torch.cuda.max_memory_allocated()
            entry["peakReserved"] = torch.cuda.max_memory_reserved()
            entry["deviceUsed"] = device_used()
            entry["seconds"] = round(time.time() - started, 2)
            if failed:
                entry["failedBefore"] = failed
            return entry
        except Exception:
            failed.append({"attention": attention, "cache": kind, "error": traceback.format_exc()[-600:]})
        finally:
            del cache
            tidy()
    return {"model": name, "context": context, "sequences": sequences, "batchTokens": step, "failed": failed}


def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    os.makedirs(folder, exist_ok=True)
    started = time.time()
    register()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    tidy()
    machine = {
        "gpu": torch.cuda.get_device_name(0), "memory": torch.cuda.mem_get_info()[1],
        "torch": torch.__version__, "transformers": transformers.__version__,
        "idleMiB": IDLE, "usedWithContext": device_used(),
    }
    print(json.dumps(machine))
    results = []

    def save():
        with open(os.path.join(folder, "measured.json"), "w") as f:
            json.dump({"machine": machine, "runs": results}, f, indent=1)

    with tarfile.open(os.path.join(folder, "models.tar"), "w") as tar:
        for name, (fields, cases) in MODELS.items():
            if time.time() - started > SECONDS:
                print(name, "left out: no time")
                continue
            model = None
            try:
                config = configuration(fields)
                model = build(config)
                tidy()
                settings = json.loads(config.to_json_string(use_diff=False))
                settings["architectures"] = [type(model).__name__]
                settings["dtype"] = "bfloat16"
                add(tar, name + "/config.json", json.dumps(settings, indent=1, sort_keys=True).encode())
                add(tar, name + "/model.safetensors", header(model))
                for case in cases:
                    if time.time() - started > SECONDS:
                        break
                    results.append(measure(name, model, *case))
                    print(round(time.time() - started), json.dumps(results[-1]))
                    save()
            except Exception:
                results.append({"model": name, "failed": traceback.format_exc()[-1500:]})
                print(json.dumps(results[-1]))
                save()
            finally:
                del model
                tidy()
    machine["together"] = together(TOGETHER)
    print(json.dumps(machine["together"]))
    save()


def hold(name, context):
    """Runs a model and keeps its memory until the process is killed."""
    register()
    model = build(configuration(MODELS[name][0]))
    tidy()
    model.set_attn_implementation("lean")
    with torch.no_grad():
        cache = StaticCache(config=model.config, max_cache_len=context)
        ahead(model.config, cache, 1)
        run(model, cache, context, 1, 2048)
    print("ready", flush=True)
    time.sleep(600)


def together(models):
    """What several processes take of the device at once, in addition to this process."""
    before, children = device_used(), []
    try:
        for name, context in models:
            child = subprocess.Popen([sys.executable, __file__, "--hold", name, str(context)], stdout=subprocess.PIPE, text=True)
            children.append(child)
            line = child.stdout.readline()
            if line.strip() != "ready":
                return {"failed": line}
        return {"models": [{"model": n, "context": c} for n, c in models], "used": device_used() - before}
    finally:
        for child in children:
            child.kill()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--hold":
        hold(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:] == ["--together"]:
        print(json.dumps(together(TOGETHER)))
    else:
        main()
