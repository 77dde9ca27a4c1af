"""Options of osken-manager become settings of Bellrock.

The options are os-ken's own, registered by its modules, and those in `OPTIONS`.
"""

from __future__ import annotations

import ipaddress

from os_ken import cfg
from os_ken.ofproto import ofproto_common, ofproto_protocol, ofproto_v1_0, ofproto_v1_3
from oslo_config.cfg import ArgsAlreadyParsedError

from .engine_log import ENGINE_LOG

VERSIONS = {ofproto_v1_0.OFP_VERSION: "1.0", ofproto_v1_3.OFP_VERSION: "1.3"}
"""What Bellrock speaks."""


OPTIONS = [
    cfg.StrOpt("bellrock-config", default=None, help="configuration file of Bellrock: limits, HTTP, control socket"),
    # Ryu had them for its REST interfaces.
    cfg.StrOpt("wsapi-host", default="0.0.0.0", help="address of the REST interfaces of apps (default: all)"),
    cfg.IntOpt("wsapi-port", default=8080, min=0, max=65535, help="port of the REST interfaces of apps"),
]
"""Options beside those of os-ken."""


class OptionError(Exception):
    """An option that Bellrock does not take, and what to do."""


def register() -> None:
    """Adds the options. A second call changes nothing."""
    for option in OPTIONS:
        try:
            cfg.CONF.register_cli_opt(option)
        except ArgsAlreadyParsedError:
            # A program with a main of its own has read its command line; a file may have the option.
            cfg.CONF.register_opt(option)


def restrict_versions() -> list[str]:
    """Leaves apps the versions that Bellrock speaks too, and returns their names."""
    supported = set(ofproto_protocol.ProtocolDesc().supported_ofp_version)
    if not supported & set(VERSIONS):
        raise OptionError(f"the apps want other versions than OpenFlow {' and '.join(VERSIONS.values())}, which are those of Bellrock")
    ofproto_protocol.set_app_supported_versions(VERSIONS)
    return [name for version, name in VERSIONS.items() if version in supported]


def settings() -> list[tuple[str, list[str]]]:
    """The settings that the options ask for, with what the apps need."""
    conf = cfg.CONF
    if conf.ofp_switch_address_list:
        raise OptionError("--ofp-switch-address-list: Bellrock does not connect to switches; let them connect to it")
    if conf.ciphers:
        raise OptionError("--ciphers: the ciphers are those of TLS 1.2 and 1.3 that are safe; leave the option out")
    given: list[tuple[str, list[str]]] = [("listen", _listen()), ("versions", restrict_versions())]
    if _has_tls():
        if not conf.ca_certs:
            raise OptionError("--ca-certs is missing: Bellrock verifies the certificates of switches")
        given += [("tls.certificate", [conf.ctl_cert]), ("tls.key", [conf.ctl_privkey]), ("tls.ca", [conf.ca_certs])]
    if conf.maximum_unreplied_echo_requests:
        interval_ms = round(conf.echo_request_interval * 1000)
        given.append(("echo_after", [f"{interval_ms} ms"]))
        given.append(("dead_after", [f"{interval_ms * conf.maximum_unreplied_echo_requests} ms"]))
    if conf.bellrock_config is None:
        # Faucet and Gauge run beside each other, and there is one default path.
        given.append(("control", ["none"]))
    given.append(("log_level", [ENGINE_LOG.level()]))
    return given


def _has_tls() -> bool:
    return cfg.CONF.ctl_privkey is not None and cfg.CONF.ctl_cert is not None


def _listen() -> list[str]:
    """Addresses, as os-ken chooses them: by TLS if there is a certificate, and at the old port too if no port is given."""
    conf = cfg.CONF
    own, usual, old, scheme = conf.ofp_tcp_listen_port, ofproto_common.OFP_TCP_PORT, ofproto_common.OFP_TCP_PORT_OLD, ""
    if _has_tls():
        own, usual, old = conf.ofp_ssl_listen_port, ofproto_common.OFP_SSL_PORT, ofproto_common.OFP_SSL_PORT_OLD
        scheme = "tls:"
    if own is not None:
        ports = [own]
    elif conf.ofp_tcp_listen_port or conf.ofp_ssl_listen_port:
        missing, needs = ("--ofp-ssl-listen-port", "") if scheme else ("--ofp-tcp-listen-port", " without a certificate")
        raise OptionError(f"{missing} is missing: only the other port is given{needs}")
    else:
        ports = [usual, old]
    return [f"{scheme}{_host(conf.ofp_listen_host)}:{port}" for port in ports]


def _host(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        raise OptionError(f"--ofp-listen-host: {text!r} is no address; give one such as 0.0.0.0 or ::") from None
    return f"[{address}]" if address.version == 6 else str(address)
