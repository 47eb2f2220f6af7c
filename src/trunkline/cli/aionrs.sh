#!/bin/sh
# Written by `trunkline shim`: trunkline @VERSION@ under the name of aionrs.
# Run that command again instead of editing this file.

python=@PYTHON@

say() {
    printf 'aionrs: %s\n' "$1" >&2
}

fail() {
    say "$1"
    exit 2
}

usage() {
    cat <<'END'
This is trunkline @VERSION@, started under the name of aionrs.

  aionrs --json-stream [OPTIONS]    be an agent for a host: trunkline agent
  aionrs [OPTIONS] [PROMPT]...      one answer, or a conversation: trunkline chat
  aionrs session list               trunkline sessions list
  aionrs config path, --config-path the configuration file that is read
  aionrs skills path, --skills-path where skills of your own belong
  aionrs --version

Options: -p/--provider -m/--model -b/--base-url -k/--api-key --profile --max-tokens --max-turns --system-prompt
--thinking --thinking-budget --session-id --resume --workspace --project-dir --auto-approve --no-color
--agent --script --mode --allow --effort --sandbox
Variables: PROVIDER MODEL BASE_URL API_KEY
END
}

run() {
    if [ ! -x "$python" ]; then
        for option in "$@"; do
            if [ "$option" = --json-stream ]; then
                printf '%s\n' @GONE_EVENT@
            fi
        done
        say @GONE@
        exit 127
    fi
    # -P: what lies in the workspace is not to be imported.
    exec "$python" -P "$@"
}

config_path() {
    run -c 'from trunkline.base.config import user_file; print(user_file())'
}

skills_path() {
    run -c 'from trunkline.base.paths import config_dir; print(config_dir() + "/skills")'
}

case "${1-} ${2-}" in
    "config path") config_path ;;
    "config init") fail "there is nothing to prepare; write what you need into the file that 'config path' prints" ;;
    "session list") run -m trunkline sessions list ;;
    "auth login" | "auth logout") fail "there is no login; set ANTHROPIC_API_KEY or OPENAI_API_KEY" ;;
    "skills path") skills_path ;;
esac

# The words that are commands of aionrs: alone, or with what is none of its commands, they are no question to a model.
is_command() {
    case $1 in
        auth | config | help | session | skills) return 0 ;;
        "auth "log* | "config init" | "config path" | "session list" | "skills path") return 0 ;;
    esac
    return 1
}

streaming='' agent='' named='' prompt='' literal='' provider='' model='' base_url=''
left=$#
while [ "$left" -gt 0 ]; do
    option=$1
    shift
    left=$((left - 1))
    value=''
    case $option in
        -p | -m | -b | -k | --provider | --model | --base-url | --api-key | --profile | --max-tokens | --max-turns | \
            --system-prompt | --session-id | --resume | --workspace | --project-dir | --thinking | --thinking-budget | \
            --agent | --script | --mode | --allow | --effort | --sandbox | --log-format | --max-line | \
            --compaction | --log-dir | --log-level | --max-tool-call-malformed-turns | --max-tool-call-failure-turns)
            if [ "$left" -eq 0 ]; then
                # Without its value it is wrong for the one who is started, too, who can say so to a host.
                set -- "$@" "$option"
                continue
            fi
            value=$1
            shift
            left=$((left - 1))
            ;;
        --agent=* | --script=* | --mode=* | --allow=* | --effort=* | --sandbox=* | --log-format=* | --max-line=* | --provider=* | --model=* | --base-url=* | --api-key=* | --profile=* | --max-tokens=* | --max-turns=* | \
            --system-prompt=* | --session-id=* | --resume=* | --workspace=* | --project-dir=* | --thinking=* | \
            --thinking-budget=* | --compaction=* | --log-dir=* | --log-level=* | --max-tool-call-*-turns=*)
            value=${option#*=}
            option=${option%%=*}
            ;;
    esac
    case $option in
        -h | --help)
            usage
            exit 0
            ;;
        -V | --version)
            echo '@ANSWER@'
            exit 0
            ;;
        --config-path) config_path ;;
        --list-sessions) run -m trunkline sessions list ;;
        --init-config) fail "there is nothing to prepare; write what you need into the file that --config-path prints" ;;
        --login | --logout) fail "there is no login; set ANTHROPIC_API_KEY or OPENAI_API_KEY" ;;
        --skills-path) skills_path ;;
        --json-stream) streaming=1 ;;
        -p | --provider) provider=1 && set -- "$@" --provider "$value" ;;
        -m | --model) model=1 && set -- "$@" --model "$value" ;;
        -b | --base-url) base_url=1 && set -- "$@" --base-url "$value" ;;
        # Not as an argument: those can be seen by everybody on the machine.
        -k | --api-key) export TRUNKLINE_API_KEY="$value" ;;
        --profile) export TRUNKLINE_PROFILE="$value" ;;
        --project-dir) set -- "$@" --workspace "$value" ;;
        --agent) agent=$value && named=1 ;;
        --script | --mode | --allow | --effort | --sandbox | --log-format | --max-line | --max-tokens | --max-turns | --system-prompt | \
            --session-id | --resume | --workspace) set -- "$@" "$option" "$value" ;;
        --thinking-budget) export TRUNKLINE_THINKING_BUDGET="$value" ;;
        --thinking)
            case $value in
                enabled) [ "${TRUNKLINE_THINKING_BUDGET:-0}" != 0 ] || export TRUNKLINE_THINKING_BUDGET=10000 ;;
                # 0 also overrules what a file says.
                disabled) export TRUNKLINE_THINKING_BUDGET=0 ;;
                *) say "--thinking is enabled or disabled, not '$value'; it has no effect" ;;
            esac
            ;;
        --no-color) export NO_COLOR=1 ;;
        --toon | --compaction | --log-dir | --log-level | --max-tool-call-*-turns) say "$option has no effect here" ;;
        --)
            literal=1
            while [ "$left" -gt 0 ]; do
                prompt="${prompt:+$prompt }$1"
                shift
                left=$((left - 1))
            done
            ;;
        # What is not known is for the one who is started to complain about, in the form that the host expects.
        -*) set -- "$@" "$option" ;;
        *) prompt="${prompt:+$prompt }$option" ;;
    esac
done

if [ -z "$literal" ] && is_command "$prompt"; then
    fail "'$prompt' is not understood here; see --help. To say it to a model, put it after --"
fi

# aionrs reads these names; under its own name, trunkline does not.
if [ -z "$provider" ] && [ -n "${PROVIDER-}" ]; then
    export TRUNKLINE_PROVIDER="${TRUNKLINE_PROVIDER:-$PROVIDER}"
fi
if [ -z "$model" ] && [ -n "${MODEL-}" ]; then
    export TRUNKLINE_MODEL="${TRUNKLINE_MODEL:-$MODEL}"
fi
if [ -z "$base_url" ] && [ -n "${BASE_URL-}" ]; then
    export TRUNKLINE_BASE_URL="${TRUNKLINE_BASE_URL:-$BASE_URL}"
fi
if [ -n "${API_KEY-}" ]; then
    export TRUNKLINE_API_KEY="${TRUNKLINE_API_KEY:-$API_KEY}"
fi

# Hosts keep MCP servers there, some without asking where.
for theirs in "${XDG_CONFIG_HOME:-${HOME-}/.config}" "${HOME-}/Library/Application Support"; do
    if [ -z "${TRUNKLINE_AIONRS_CONFIG-}" ] && [ -f "$theirs/aionrs/config.toml" ]; then
        export TRUNKLINE_AIONRS_CONFIG="$theirs/aionrs/config.toml"
    fi
done

if [ -n "$streaming" ]; then
    [ -z "$named" ] || set -- --agent "$agent" "$@"
    run -m trunkline agent --json-stream "$@" ${prompt:+"$prompt"}
fi
# For people, who answers is no option.
[ -z "$agent" ] || set -- "$agent" "$@"
if [ -n "$prompt" ]; then
    run -m trunkline chat "$@" -p "$prompt"
else
    run -m trunkline chat "$@"
fi
