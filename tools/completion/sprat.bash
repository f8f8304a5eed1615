
# _sprat_reply WORD CANDIDATES: those that begin with it.
_sprat_reply() {
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$2" -- "$1")
}

_sprat_files() { # KIND WORD
  compopt -o filenames 2>/dev/null
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
    [ "$1" != file ] || compgen -f -- "$2"
    [ "$1" = file ] || compgen -d -- "$2"
    [ "$1" != yaml ] || compgen -f -X '!*.yaml' -- "$2"
    [ "$1" != yaml ] || compgen -f -X '!*.yml' -- "$2"
  )
}

# section.key=value; bash may take "=" for the end of a word.
_sprat_setting() {
  local key=${1%%=*} found
  if [[ $1 != *=* ]]; then
    mapfile -t found < <(compgen -S = -W "$_sprat_keys" -- "$1")
    [ ${#found[@]} -eq 0 ] || compopt -o nospace 2>/dev/null
    COMPREPLY+=("${found[@]}")
    return
  fi
  _sprat_reply "${1#*=}" "$(_sprat_values "$key")"
  [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$key=}")
}

_sprat_word() { # KIND WORD
  case $1 in
    file | folder | yaml) _sprat_files "$1" "$2" ;;
    verb) _sprat_reply "$2" "$_sprat_verbs" ;;
    kind) _sprat_reply "$2" "$_sprat_kinds $_sprat_keys" ;;
    op) _sprat_reply "$2" "$_sprat_ops" ;;
  esac
}

# Status 1: the option takes no value.
_sprat_flag_value() { # VERB FLAG WORD
  local value
  value=$(_sprat_value_of "$1 $2")
  [ -n "$value" ] || return 1
  _sprat_word "${value%% *}" "$3"
  [[ $value != *' '* ]] || _sprat_reply "$3" "${value#* }"
}

_sprat() {
  local line=${COMP_LINE:0:COMP_POINT} word verb i place=0
  local -a given kinds
  COMPREPLY=()
  read -ra given <<<"$line"
  [[ $line != *[[:space:]] ]] || given+=('')
  word=${given[-1]} verb=${given[1]}
  if [ ${#given[@]} -le 2 ]; then
    _sprat_reply "$word" "$_sprat_verbs"
    return
  fi
  case $word in
    -*=*)
      _sprat_flag_value "$verb" "${word%%=*}" "${word#*=}"
      return
      ;;
    -*)
      _sprat_reply "$word" "$(_sprat_flags "$verb")"
      return
      ;;
  esac
  ! _sprat_flag_value "$verb" "${given[-2]}" "$word" || return 0
  for ((i = 2; i < ${#given[@]} - 1; i++)); do
    if [ -n "$(_sprat_value_of "$verb ${given[i]}")" ]; then
      i=$((i + 1))
    elif [[ ${given[i]} != -* && ${given[i]} != *=* ]]; then
      place=$((place + 1))
    fi
  done
  [ $place -le 2 ] || place=2
  read -ra kinds <<<"$(_sprat_operands "$verb")"
  [[ $word == *=* ]] || _sprat_word "${kinds[place]:-any}" "$word"
  # All keys are too many to be of help.
  [ -z "$word" ] || [ "${kinds[3]:-}" != setting ] || _sprat_setting "$word"
}
complete -F _sprat sprat
