
_sprat_setting() { # section.key=value
  if compset -P '*='; then
    compadd -- ${=$(_sprat_values ${IPREFIX%=})}
  else
    compadd -S '' -- ${^${=_sprat_keys}}=
  fi
}

_sprat_word() { # KIND
  case $1 in
    file) _files ;;
    folder) _files -/ ;;
    yaml) _files -g '*.(yaml|yml)' ;;
    verb) compadd -- ${=_sprat_verbs} ;;
    kind) compadd -- ${=_sprat_kinds} ${=_sprat_keys} ;;
    op) compadd -- ${=_sprat_ops} ;;
  esac
}

_sprat() {
  local verb=${words[2]} place=0 i value
  local -a kinds about
  if ((CURRENT == 2)); then
    about=(${(f)"$(_sprat_about)"})
    _describe verb about
    return
  fi
  if [[ ${words[CURRENT]} == -* ]]; then
    compadd -- ${=$(_sprat_flags $verb)}
    return
  fi
  value=(${=$(_sprat_value_of "$verb ${words[CURRENT - 1]}")})
  if ((${#value})); then
    _sprat_word ${value[1]}
    compadd -- ${value[2,-1]}
    return
  fi
  for ((i = 3; i < CURRENT; i++)); do
    if [[ -n $(_sprat_value_of "$verb ${words[i]}") ]]; then
      ((i++))
    elif [[ ${words[i]} != -* && ${words[i]} != *=* ]]; then
      ((place++))
    fi
  done
  ((place < 3)) || place=2
  kinds=(${=$(_sprat_operands $verb)})
  [[ ${words[CURRENT]} == *=* ]] || _sprat_word ${kinds[place + 1]}
  # All keys are too many to be of help.
  [[ -z ${words[CURRENT]} || ${kinds[4]} != setting ]] || _sprat_setting
}
_sprat "$@"
