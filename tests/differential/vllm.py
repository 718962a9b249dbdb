"""vLLM's cache manager and scheduler on a CPU: modules of the released wheel over stubs."""

import os
from contextlib import nullcontext
from typing import Any
from unittest.mock import MagicMock

from tests.differential.stubs import Fields, stub

CORE = "vllm.v1.core"
stub(
    "vllm",
    f"vllm.v1 {CORE} vllm.utils vllm.distributed vllm.v1.metrics {CORE}.sched {CORE}.kv_cache_utils {CORE}.block_pool "
    f"{CORE}.kv_cache_manager {CORE}.kv_cache_coordinator {CORE}.single_type_kv_cache_manager {CORE}.kv_cache_metrics "
    "vllm.utils.hashing vllm.utils.math_utils vllm.distributed.kv_events vllm.v1.metrics.stats "
    "vllm.v1.metrics.cache_hit_source vllm.v1.kv_cache_interface vllm.v1.kv_cache_spec_registry vllm.v1.request "
    f"{CORE}.sched.scheduler {CORE}.sched.interface {CORE}.sched.request_queue {CORE}.sched.utils {CORE}.sched.output",
)

import torch  # noqa: E402
import vllm.v1.core.kv_cache_manager as manager  # noqa: E402
import vllm.v1.core.kv_cache_utils as utils  # noqa: E402
import vllm.v1.core.sched.scheduler as sched  # noqa: E402
import vllm.v1.kv_cache_interface as interface  # noqa: E402
import vllm.v1.request as requests  # noqa: E402
from vllm.utils.hashing import sha256_cbor, xxhash_cbor  # noqa: E402
from vllm.v1.metrics.stats import CachingMetrics  # noqa: E402
from vllm.v1.request import RequestStatus  # noqa: E402

utils.envs.VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES = False
sched.record_function_or_nullcontext = lambda name: nullcontext()
sched.EventPublisherFactory = MagicMock()
sched.NewRequestData = Fields(from_request=lambda r, *a, **k: Fields(mm_features=[], req_id=r.request_id))
sched.PauseState = Fields(UNPAUSED=0, PAUSED_ALL=1)
sched.EngineCoreOutput = lambda **fields: fields
sched.EngineCoreOutputs = Fields
requests.StructuredOutputRequest = Fields(from_sampling_params=staticmethod(lambda params: None))
requests.length_from_prompt_token_ids_or_embeds = lambda ids, embeds: len(ids)
requests.ConstantList = lambda values: values
requests.Request.record_event = lambda self, *a: None
requests.Request.take_events = lambda self: None
requests.Request.get_finished_reason = lambda self: None

__all__ = ["CachingMetrics", "RequestStatus", "sha256_cbor", "utils", "xxhash_cbor"]


class CacheRequest:
    """What the cache manager reads of a request."""

    def __init__(self, id: str, tokens: Any, block_size: int, hash_function: Any, **settings: Any) -> None:
        self.request_id, self._tokens = id, list(tokens)
        self.num_prompt_tokens, self.num_computed_tokens, self.num_preemptions = len(tokens), 0, 0
        self.status = RequestStatus.WAITING
        self.skip_reading_prefix_cache = settings.get("skips", False)
        self.cache_salt, self.lora_request = settings.get("salt"), settings.get("adapter")
        self.mm_features, self.prompt_embeds, self._prompt_embeds_per_block_hashes = [], None, {}
        self.shared_prefix_boundary = self.num_in_flight_tokens = self.replay_start = 0
        self.session_id = None
        self.block_hashes: list[bytes] = []
        self._hasher = utils.get_request_block_hasher(block_size, hash_function)
        self.append()

    def append(self, *tokens: int) -> None:
        self._tokens.extend(tokens)
        self.block_hashes.extend(self._hasher(self))

    @property
    def num_tokens(self) -> int:
        return len(self._tokens)

    @property
    def all_token_ids(self) -> list[int]:
        return self._tokens


def adapter(name: str, path: str) -> Fields:
    return Fields(lora_name=name, lora_path=path, lora_int_id=1, adapter_id=1, name=name)


def _kv_config(num_blocks: int, block_size: int) -> Any:
    layer = interface.FullAttentionSpec(block_size=block_size, num_kv_heads=1, head_size=1, dtype=torch.float32)
    groups = [interface.KVCacheGroupSpec(["layer"], layer)]
    return interface.KVCacheConfig(num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=groups)


def cache_manager(num_blocks: int, block_size: int, hash_function: Any, caching: bool, watermark: float) -> Any:
    utils.init_none_hash(hash_function)
    return manager.KVCacheManager(
        _kv_config(num_blocks, block_size),
        max_model_len=1 << 20,
        scheduler_block_size=block_size,
        hash_block_size=block_size,
        enable_caching=caching,
        enable_kv_cache_events=True,
        log_stats=True,
        watermark=watermark,
    )


def free_queue(cache: Any) -> list[int]:
    return [block.block_id for block in cache.block_pool.free_block_queue.get_all_free_blocks()]


def scheduler(
    num_blocks: int,
    block_size: int,
    *,
    budget: int,
    max_seqs: int,
    threshold: int,
    watermark: float,
    whole: bool,
    by_priority: bool,
) -> Any:
    """`whole`: a waiting request is admitted if all of it fits, not only its first chunk."""
    config = Fields(
        scheduler_config=Fields(
            max_num_seqs=max_seqs,
            max_num_active_seqs=None,
            max_num_scheduled_tokens=None,
            max_num_batched_tokens=budget,
            long_prefill_token_threshold=threshold,
            long_prefill_token_threshold_adaptive=False,
            policy="priority" if by_priority else "fcfs",
            watermark=watermark,
            prefill_schedule_interval=1,
            scheduler_reserve_full_isl=whole,
            enable_chunked_prefill=True,
            async_scheduling=False,
        ),
        model_config=Fields(
            uses_mrope=False,
            is_encoder_decoder=False,
            max_model_len=100_000,
            runner_type="generate",
            is_diffusion=False,
            supports_multimodal_inputs=False,
            return_sampling_mask=False,
        ),
        parallel_config=Fields(
            data_parallel_index=0,
            data_parallel_size=1,
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
            pipeline_parallel_size=1,
        ),
        cache_config=Fields(
            num_gpu_blocks=num_blocks,
            enable_prefix_caching=True,
            enable_mamba_shared_prefix_checkpoint=False,
            mamba_cache_mode="none",
        ),
        observability_config=Fields(
            per_request_spec_decode_metrics="none",
            kv_cache_metrics=False,
            enable_mfu_metrics=False,
            enable_logging_iteration_details=False,
        ),
        ec_manager_config=Fields(
            get_encoder_cache_manager_obj=lambda: Fields(create_manager=lambda **settings: MagicMock())
        ),
        lora_config=None,
        kv_events_config=None,
        kv_transfer_config=None,
        ec_transfer_config=None,
        speculative_config=None,
        is_mm_encoder_only=False,
        num_speculative_tokens=0,
        num_lookahead_tokens=0,
        num_prefill_lookahead_tokens=0,
        num_hash_lookahead_tokens=0,
        use_v2_model_runner=True,
        max_in_flight_tokens=None,
        max_concurrent_batches=1,
        aux_output_config=Fields(enabled=False),
    )
    os.environ.pop("PYTHONHASHSEED", None)  # the part `cache` sets it; vLLM makes the root of its chains from it
    utils.init_none_hash(sha256_cbor)
    real = sched.Scheduler(config, _kv_config(num_blocks, block_size), MagicMock(), block_size, log_stats=True)
    real.encoder_cache_manager = MagicMock()
    real.structured_output_manager.accept_tokens = lambda *a: True
    real.make_stats = lambda *a, **k: None  # it would take the counts before we read them
    return real


def scheduler_request(
    id: str,
    tokens: list[int],
    max_tokens: int,
    salt: str | None,
    skips: bool,
    priority: int,
    arrival: float,
    hasher: Any,
) -> Any:
    params = Fields(
        max_tokens=max_tokens,
        extra_args=None,
        skip_reading_prefix_cache=skips,
        eos_token_id=STOP,
        stop_token_ids=(),
        min_tokens=0,
        repetition_detection=None,
        num_logprobs=None,
    )
    return requests.Request(
        id,
        list(tokens),
        params,
        None,
        arrival_time=arrival,
        cache_salt=salt,
        priority=priority,
        block_hasher=hasher,
    )


STOP = 9  # the token that ends an output


def step_result(ids: list[str], sampled: list[list[int]]) -> Fields:
    """What the model runner returns."""
    return Fields(
        sampled_token_ids=sampled,
        req_id_to_index={id: index for index, id in enumerate(ids)},
        logprobs=None,
        prompt_logprobs_dict={},
        prompt_token_id_logprobs_dict={},
        pooler_output=None,
        num_nans_in_logits=None,
        kv_connector_output=None,
        ec_connector_output=None,
        cudagraph_stats=None,
        aux_output_connector_output=None,
        sampling_masks=None,
    )
