# Completion of podsim for bash: the program itself knows what may follow a command line.

_podsim() {
  local line=${COMP_LINE:0:COMP_POINT} word replaced kept candidate what file
  word=${line##*[[:space:]]}
  replaced=${word##*["$COMP_WORDBREAKS"]} # the part of the word that bash replaces
  kept=${word%"$replaced"}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate what; do
    case $candidate in
      :open) compopt -o nospace ;;
      :files)
        compopt -o filenames
        while IFS= read -r file; do
          file=$what$file
          COMPREPLY+=("${file#"$kept"}")
        done < <(compgen -f -- "${word#"$what"}")
        ;;
      *) COMPREPLY+=("${candidate#"$kept"}") ;;
    esac
  done < <("$1" complete "$line" 2> /dev/null)
}

complete -F _podsim podsim
