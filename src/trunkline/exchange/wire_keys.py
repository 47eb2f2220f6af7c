"""Settings of a wire that is also a service of its own: its keys in the exchange's file replace its own section."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.base.config import Config, Layer
from trunkline.base.config_file import ConfigFileError, TomlFile
from trunkline.base.config_services import schema_of
from trunkline.base.config_settled import EffectiveConfig
from trunkline.core.faults import ConfigError
from trunkline.exchange import config_secrets
from trunkline.exchange.config_secrets import ENV, KEYRING
from trunkline.exchange.settings import WireSettings


def settled(path: str, wire: WireSettings, environ: Mapping[str, str]) -> EffectiveConfig:
    """Variables, the wire's keys, defaults. A secret that the file names counts more than one in its usual variable.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    named = config_secrets.named(wire, environ)
    keys = {key: value for key, value in wire.keys.items() if not key.endswith((ENV, KEYRING))} | named
    hidden = {variable for key, variable in config_secrets.usual(wire.name).items() if key in named}
    environ = {name: value for name, value in environ.items() if name not in hidden}
    config = Config([Layer(TomlFile(path, {}, ""), {wire.name: keys})], schema=schema_of(wire.name))
    try:
        return EffectiveConfig(wire.name, config, None, environ)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None
