"""What the coding agent works with: flags, variables and files, resolved into one record.

    flags, and the `TRUNKLINE_*` variables that stand for them
    the profile that was asked for
    the provider's own variables, such as `ANTHROPIC_API_KEY`
    the files, `[providers.NAME]` and `[default]`
    defaults

The upper beats the lower. The files of a workspace that nobody trusts are no source: what they say narrows what all but
the flags have given. Two rules keep keys where they belong: an address and a key that stand together in a file are used
together, and a model, key or address that was set for one provider is never used with another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.agents.coder.kept_rules import kept_in
from trunkline.agents.coder.settings_approvals import approvals, permissions
from trunkline.agents.coder.settings_flags import flags
from trunkline.agents.coder.settings_hooks import NO_HOOKS, HookTable, hooks
from trunkline.agents.coder.settings_lsp import NO_LSP, LspSettings, lsp_settings
from trunkline.agents.coder.settings_mcp import Servers, configured_servers, mcp_servers
from trunkline.agents.coder.settings_models import compat_keys, longest_answer, prices, secrets_of, unheeded_effort
from trunkline.agents.coder.settings_profiles import ACCOUNT, OF_NO_PROVIDER, Table, lineage, profile
from trunkline.agents.coder.settings_values import Reference, all_secrets, expanded, names, secrets_in, told_by
from trunkline.agents.coder.settings_web import NO_WEB, WebSettings, web_settings
from trunkline.base.config import Config, ConfigFileError, load, user_file
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ConfigError, MissingKey, NoModel
from trunkline.core.rules import NO_RULES, Rules
from trunkline.models.endpoint import is_own_machine
from trunkline.models.prices import Price
from trunkline.models.providers import KEYLESS, NAMES, PROVIDERS, SERVICES, ModelSettings, check


class CoderSettings(Value):
    """Everything that the coding agent needs to know."""

    model: ModelSettings
    why: str
    """How the provider was chosen, for people."""
    max_turns: int | None = None
    instructions: str | None = None
    """What the files add to the system prompt. What the command line adds comes with the `OpenRequest`."""
    thinking_budget: int | None = None
    effort: str | None = None
    context_window: int | None = None
    """If the model's own is not to be believed."""
    compaction: bool = True
    sessions: bool = True
    """Whether conversations are kept."""
    compact_at: float | None = None
    """The share of the window at which compaction begins, between 0 and 1."""
    mode: Mode | None = None
    auto_approve: bool = False
    allow: tuple[str, ...] | None = None
    allow_outside: bool = False
    """Whether what is allowed by its name is so outside the workspace, too."""
    permissions: Rules = NO_RULES
    hooks: HookTable = NO_HOOKS
    """What is run when, as the files that are trusted say it."""
    sandbox: str | None = None
    """`on`, `auto` or `off`; None: nobody has said."""
    sandbox_hosts: tuple[str, ...] = ()
    """Where commands in the sandbox may connect to."""
    web: WebSettings = NO_WEB
    lsp: LspSettings = NO_LSP
    output_style: str | None = None
    mcp_servers: tuple[AddMcpServer, ...] = ()
    trusted: bool = False
    """Whether the user trusts the workspace."""
    prices: Mapping[str, Price] = {}
    """Of models whose price the user knows better."""
    secrets: tuple[str, ...] = ()
    """Values from the files that must not be shown, in use or not; those of the environment are known already."""
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Servers and secrets are nobody's to read in a log.
        return f"CoderSettings(model={self.model!r})"


def load_config(workspace: str, environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration files.

    Raises:
        ConfigError: one of them cannot be used.
    """
    try:
        return load(workspace, environ)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None


def resolve(
    options: Mapping[str, Any],
    workspace: str,
    environ: Mapping[str, str] = os.environ,
    config: Config | None = None,
) -> CoderSettings:
    """Decide what to work with. `options` holds what the command line said; what is absent or None was not said.

    Raises:
        ConfigError: something is missing or contradictory; the text says what to do.
    """
    found = config or load_config(workspace, environ)
    try:
        return _Resolver(options, environ, found, kept_in(workspace, environ)).resolve()
    except ConfigError as error:
        error.add(found.all_warnings())
        raise


class _Resolver:
    """One resolution: the sources, and what is found out about them on the way."""

    def __init__(self, options: Mapping[str, Any], environ: Mapping[str, str], config: Config, kept: Rules) -> None:
        self._environ = environ
        self._config = config
        self._kept = kept
        self._flags = flags(options, environ)
        self._profile_name = self._flags.get("profile")
        self._lineage = lineage(config, self._profile_name, environ)
        self._profile = profile(config, self._lineage)
        self._default: Table = config.get("default", default={})
        self._name, self._why = self._provider()
        self._table: Table = self._provider_table()
        self._kind = self._provider_kind()
        if self._profile.get("provider", self._name) != self._name:
            # It was made for another provider: what it says of that one is of no use with this one.
            self._profile = {key: value for key, value in self._profile.items() if key in OF_NO_PROVIDER}

    def resolve(self) -> CoderSettings:
        model = self._model_settings()
        self._check(model)
        compact: Table = self._config.get("compact", default={})
        percent = compact.get("threshold_pct")
        servers = self._servers()
        self._note_unknown_compat()
        effort, mode = self._asked("effort"), self._asked("mode")
        web = web_settings(self._config.get("web", default={}), self._environ)
        lsp = lsp_settings(self._config.get("lsp", default={}), self._environ)
        unasked = approvals(self._config, more_tools=bool(servers.servers))
        rules, broken_rules = permissions(self._config, self._kept, more_tools=bool(servers.servers))
        hook_table, hook_slips = hooks(self._config)
        return CoderSettings(
            model=model,
            why=self._why,
            max_turns=self._asked("max_turns") or None,
            instructions=self._first("system_prompt", self._profile, self._default),
            thinking_budget=self._asked("thinking_budget", otherwise=0) or None,
            effort=effort,
            context_window=compact.get("context_window"),
            compaction=compact.get("enabled", True),
            sessions=self._config.keeps_sessions,
            compact_at=None if percent is None else percent / 100,
            # It is the mode to begin with, and a workspace may narrow it like any other. Who plans agrees first.
            mode=self._narrowed("mode", "yolo") if unasked.auto_approve and mode != "plan" else mode,
            auto_approve=unasked.auto_approve,
            allow=unasked.allow,
            allow_outside=unasked.allow_outside,
            permissions=rules,
            hooks=hook_table,
            sandbox=self._flags.get("sandbox") or self._narrowed_at("sandbox", "mode"),
            sandbox_hosts=tuple(self._narrowed_at("sandbox", "network") or ()),
            web=web,
            lsp=lsp,
            output_style=self._asked("output_style"),
            mcp_servers=servers.servers,
            trusted=self._config.trusted,
            prices=prices(self._config),
            secrets=tuple(sorted(secrets_of(model) | self._secrets_in_files())),
            warnings=(
                *self._config.all_warnings(),
                *self._exposed(),
                *servers.warnings,
                *unasked.warnings,
                *web.warnings,
                *hook_slips,
                *lsp.warnings,
                *broken_rules,
                *unheeded_effort(model, effort),
            ),
        )

    # Which provider

    def _provider(self) -> tuple[str, str]:
        """Its name, and how it was found."""
        if name := self._flags.get("provider"):
            return name, f"The provider is `{name}`, as asked for."
        if name := self._profile.get("provider"):
            return name, f"The provider is `{name}`: the profile `{self._profile_name}` says so."
        if name := self._default.get("provider"):
            origin = self._config.origin("default", "provider")
            return name, f"The provider is `{name}`: `{origin.file if origin else ''}` says so."
        for name, provider in PROVIDERS.items():
            for variables in provider.told_by:
                if all(self._environ.get(variable) for variable in variables):
                    return name, told_by(name, variables)
        for name, table in self._config.get("providers", default={}).items():
            if table.get("api_key") or self._environ.get(table.get("api_key_env", "")):
                return name, f"The provider is `{name}`: the configuration has a key for it."
        raise NoModel(
            "No model is configured.",
            hint=f"Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, name a provider with `--provider` "
            f"({names(NAMES)}), "
            f'or write `[default]` and `provider = "..."` into `{user_file(self._environ)}`.',
        )

    def _provider_table(self) -> Table:
        """What the files say about the provider, over what is known of one with that name."""
        said: Table = self._config.get("providers", self._name, default={})
        service = SERVICES.get(self._name)
        if service is None or "provider" in said:
            return said
        known = {"provider": service.provider, "base_url": service.base_url, "model": service.model}
        if service.base_url is None:
            from trunkline.models.discover_servers import server_url

            known["base_url"] = url = f"{server_url(self._name, self._environ)}/v1"
            known["api_key"] = None if is_own_machine(url) else KEYLESS
        if "api_key" not in said and "base_url" not in said:
            known["api_key_env"] = service.variable
        return {**{key: value for key, value in known.items() if value is not None}, **said}

    def _provider_kind(self) -> str:
        """What the provider speaks."""
        kind: str = self._table.get("provider", self._name)
        if kind in PROVIDERS:
            return kind
        if kind != self._name:
            error = self._config.error(
                f"must be one of {names(PROVIDERS)}, not `{kind}`", "providers", self._name, "provider"
            )
            raise ConfigError(f"{error}.")
        own = [name for name in self._config.get("providers", default={}) if name not in NAMES]
        known = [*NAMES, *own]
        if self._name in own:
            raise ConfigError(
                f"`[providers.{self._name}]` does not say what it speaks.",
                hint='Add `provider = "openai"` or `provider = "anthropic"` to it.',
            )
        raise ConfigError(
            f"There is no provider `{self._name}`.{suggestion(self._name, known)}", hint=f"There are {names(known)}."
        )

    # The model

    def _model_settings(self) -> ModelSettings:
        base_url, api_key, key_name = self._address_and_key()
        account = {option: self._reached(option) for option in ACCOUNT}
        if account["credentials"] is not None:
            account["credentials"] = os.path.expanduser(account["credentials"])
        model = self._model(base_url)
        return ModelSettings(
            provider=self._kind,
            model=model,
            api_key=api_key,
            base_url=base_url,
            max_tokens=self._max_tokens(model),
            compat=self._compat(),
            key_name=key_name,
            **account,
        )

    def _max_tokens(self, model: str | None) -> int | None:
        # Asked once, with what holds by itself: who narrows nothing yet is told that it is not followed.
        narrowed = any(self._narrowing("max_tokens"))
        found: int | None = self._asked(
            "max_tokens", otherwise=longest_answer(self._kind, model or "") if narrowed else None
        )
        return found

    def _compat(self) -> dict[str, Any]:
        found = {**self._table.get("compat", {}), **self._profile.get("compat", {})}
        for path in self._narrowing("compat"):
            for layer in self._config.projects:
                for key in layer.at(*path) or ():
                    if (value := self._config.narrowed(found.get(key), *path, key)) is not None:
                        found[key] = value
        return found

    def _check(self, model: ModelSettings) -> None:
        """Like `check`; but a provider that the user named does not go by the variables of its kind."""
        keyless = not model.api_key and PROVIDERS[self._kind].has_key
        if self._name != self._kind and keyless and not is_own_machine(model.base_url or ""):
            raise MissingKey(
                f"The provider `{self._name}` has no key.",
                hint=f"Write `api_key_env` or `api_key` into `[providers.{self._name}]`.",
            )
        try:
            check(model)
        except ConfigError as error:
            if error.hint is None or "the configuration file" not in error.hint:
                raise
            error.say(hint=error.hint.replace("the configuration file", f"`{user_file(self._environ)}`"))
            raise

    def _model(self, base_url: str | None) -> str | None:
        meant_for = self._default.get("provider")
        default = self._default if meant_for in (self._name, None) else {}
        # A model that was set for this very provider beats one that was set for whichever it is.
        order = (default, self._table) if meant_for == self._name else (self._table, default)
        found: str | None = self._first("model", self._flags, self._profile, *order)
        if found is None and self._name in SERVICES:
            raise NoModel(
                f"No model is chosen for `{self._name}`.",
                hint="Name one with `--model`.",
                provider=self._name,
                base_url=base_url,
            )
        return found or PROVIDERS[self._kind].model

    def _asked(self, option: str, otherwise: Any = None) -> Any:
        """What is to be done; `otherwise` is what happens if nobody says."""
        if option in self._flags:
            return self._flags[option]
        found = self._first(option, self._profile, self._table, self._default)
        return self._narrowed(option, otherwise if found is None else found)

    def _narrowed_at(self, *path: str) -> Any:
        return self._config.narrowed(self._config.get(*path), *path)

    def _narrowed(self, option: str, found: Any) -> Any:
        for path in self._narrowing(option):
            found = self._config.narrowed(found, *path)
        return found

    def _narrowing(self, option: str) -> Iterator[tuple[str, ...]]:
        """Where the files of a workspace that nobody trusts could say something of an option, and do."""
        tables = [("default",), ("providers", self._name), *(("profiles", name) for name in self._lineage)]
        for layer in self._config.projects:
            for table in tables:
                if layer.at(*table, option) is not None:
                    yield (*table, option)

    def _sources(self) -> tuple[Table, ...]:
        """Who may say where the model is, the one who counts most first."""
        variables = PROVIDERS[self._kind].variables if self._name == self._kind else {}
        ambient = {option: value for option, name in variables.items() if (value := self._environ.get(name))}
        flags: Table = {option: self._flags[option] for option in ("base_url", "api_key") if option in self._flags}
        return flags, self._profile, ambient, self._table

    def _reached(self, option: str) -> str | None:
        value = self._first(option, *self._sources())
        return None if value is None else self._expanded(value, option)

    def _address_and_key(self) -> tuple[str | None, str | None, str | None]:
        """Both, and where people find the key."""
        sources = self._sources()
        flags = sources[0]
        addressed = next((source for source in sources if source.get("base_url")), {})
        base_url: str | None = addressed.get("base_url")
        for source in (flags, addressed, *sources):
            if variable := source.get("api_key_env"):
                if not self._environ.get(variable):
                    raise MissingKey(f"{variable} not set.", hint=self._named_in("api_key_env"))
                return base_url, self._environ[variable], variable
            if key := source.get("api_key"):
                return base_url, self._expanded(key, "api_key"), self._key_name(source)
        return base_url, None, None

    def _key_name(self, source: Table) -> str | None:
        """What to call a key that stands in a source itself; None: what it is called anyway."""
        if source is self._table:
            return f"providers.{self._name}.api_key"
        if source is self._profile:
            return f"profiles.{self._profile_name}.api_key"
        return "TRUNKLINE_API_KEY" if "api_key" in self._flags else None

    def _expanded(self, text: str, option: str) -> str:
        try:
            return expanded(text, self._environ)
        except Reference as missing:
            raise MissingKey(f"{missing.variable} not set.", hint=self._named_in(option)) from None

    def _named_in(self, option: str) -> str:
        """Who refers to a variable that is missing."""
        in_profile = self._profile.get(option) is not None
        table = ("profiles", str(self._profile_name)) if in_profile else ("providers", self._name)
        origin = self._config.origin(*table, option)
        if origin is None:
            return f"The key of `{self._name}` is read from there."
        return f"The `{option}` of `{self._name}` in `{origin.file}` refers to it."

    @staticmethod
    def _first(option: str, *sources: Table) -> Any:
        return next((source[option] for source in sources if source.get(option) is not None), None)

    # The rest

    def _servers(self) -> Servers:
        only = self._profile.get("mcp_servers")
        for path in self._narrowing("mcp_servers"):
            only = self._config.narrowed(only, *path)
        return mcp_servers(configured_servers(self._config), self._environ, only=only)

    def _secrets_in_files(self) -> set[str]:
        """Of every provider, profile and server, also where nothing of it is used or allowed: tools can read files."""
        found: set[str] = set()
        for layer in (*self._config.layers, *self._config.projects):
            found |= all_secrets(layer.file.table, self._environ)
        return found

    def _note_unknown_compat(self) -> None:
        """Compatibility keys that change nothing are mentioned where the other keys without effect are."""
        from trunkline.models.encoding import ALWAYS_ON

        places = [("providers", self._name, "compat")]
        if self._profile.get("compat"):
            places.append(("profiles", str(self._profile_name), "compat"))
        for place in places:
            for key in self._config.get(*place, default={}):
                done_anyway = key in ALWAYS_ON and self._config.get(*place, key) is True
                if key not in compat_keys(self._kind) and not done_anyway:
                    self._note_without_effect((*place, key))

    def _note_without_effect(self, path: tuple[str, ...]) -> None:
        origin = self._config.origin(*path)
        if origin is None:
            return
        if origin.file in self._config.unused:
            self._config.unused[origin.file].append(origin.key)
        else:
            line = f", line {origin.line}" if origin.line else ""
            advice = suggestion(path[-1], compat_keys(self._kind))
            self._config.warnings.append(f"`{origin.file}`{line}: `{origin.key}` has no effect.{advice}")

    def _exposed(self) -> tuple[str, ...]:
        """A warning if a file with a key in it can be read by others."""
        if not secrets_in(self._table):
            return ()
        files = {origin.file for key in self._table if (origin := self._config.origin("providers", self._name, key))}
        return tuple(
            f"`{file}` holds a key and can be read by others: `chmod 600` it, or use `api_key_env`."
            for file in sorted(files)
            if os.path.exists(file) and os.stat(file).st_mode & 0o077
        )
