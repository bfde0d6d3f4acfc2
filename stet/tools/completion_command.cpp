// stet completion: for shells, scripts that ask `stet __complete -- words…` what may stand where.
#include <algorithm>
#include <iostream>

#include "stet/base/text.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

// bash cuts words at ':', too, so the script cuts the line itself, and takes away from the answers what bash has
// already.
constexpr std::string_view bash_script = R"script(# bash completion for stet: eval "$(stet completion bash)"
_stet() {
  local line="${COMP_LINE:0:COMP_POINT}" words word cut="" i
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  word="${words[-1]}"
  [[ "$COMP_WORDBREAKS" == *:* ]] && cut="${word%"${word##*:}"}"
  mapfile -t COMPREPLY < <("$1" __complete -- "${words[@]:1}" 2> /dev/null)
  for i in "${!COMPREPLY[@]}"; do
    COMPREPLY[i]="${COMPREPLY[i]%%$'\t'*}"
    COMPREPLY[i]="${COMPREPLY[i]#"$cut"}"
  done
}
complete -o default -F _stet stet
)script";

constexpr std::string_view zsh_script = R"script(#compdef stet
# zsh completion for stet: a file _stet in a folder of $fpath, or source <(stet completion zsh)
_stet() {
  local line
  local -a candidates
  for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    [[ -n "$line" ]] && candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#candidates} )); then
    _describe stet candidates
  else
    _files
  fi
}
if [[ "${funcstack[1]}" == _stet ]]; then
  _stet "$@"
else
  compdef _stet stet
fi
)script";

constexpr std::string_view fish_script = R"script(# fish completion for stet: stet completion fish | source
function __stet_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l found (command $words[1] __complete -- $words[2..-1] "$word" 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$word"
    end
end
complete -c stet -f -a '(__stet_complete)'
)script";

struct Shell {
  std::string_view name, script;
};
constexpr Shell shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

int run_completion(const Words& words) {
  std::vector<std::string_view> names;
  for (const Shell& shell : shells) names.push_back(shell.name);
  const std::string wanted = words.one_of(names);
  if (wanted.empty()) throw UsageError(text("stet completion: of which shell? ", joined(names, ", ")));
  for (const Shell& shell : shells)
    if (shell.name == wanted) std::cout << shell.script;
  return 0;
}

/// The words that a form begins with when it is called: "list" of "[list]"; none of "<name>".
std::string first_word(const Form& form) {
  std::string_view words = form.words;
  if (words.starts_with('[')) words.remove_prefix(1);
  std::string_view word = words.substr(0, words.find_first_of(" ]"));
  return word.find_first_of("<…") == word.npos ? std::string(word) : std::string();
}

std::vector<Candidate> first_words(const Command& command) {
  std::vector<Candidate> out;
  for (const Form& form : command.forms)
    if (std::string word = first_word(form); !word.empty()) out.push_back({word, std::string(form.help)});
  return out;
}

/// What may stand last, where `given` are all words behind stet up to there.
std::vector<Candidate> candidates_of(std::span<const std::string> given) {
  if (given.size() <= 1) {
    std::vector<Candidate> out = help_command.candidates({});
    if (!given.empty() && given[0].starts_with('-'))
      out = {{"--help", std::string(help_command.help)}, {"--version", std::string(version_command.help)}};
    return out;
  }
  const Command* command = find_command(given[0]);
  if (!command) return {};
  auto option_of = [&](std::string_view word) -> const Option* {
    for (const Option& option : command->options)
      if (option.name == word) return &option;
    return nullptr;
  };
  std::vector<std::string> before;
  std::span<const std::string> words = given.subspan(1, given.size() - 2);
  bool options_end = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (options_end || !words[i].starts_with("-")) {
      before.push_back(words[i]);
    } else if (words[i] == "--") {
      options_end = true;
    } else if (const Option* option = option_of(words[i]); option && !option->value.empty()) {
      if (i + 1 == words.size()) return {};  // its value
      ++i;
    }
  }
  if (given.back().starts_with("-") && !options_end) {
    std::vector<Candidate> out;
    for (const Option& option : command->options) out.push_back({std::string(option.name), std::string(option.help)});
    out.push_back({"--help", "how it is called"});
    return out;
  }
  if (command->candidates) return command->candidates(before);
  return before.empty() ? first_words(*command) : std::vector<Candidate>();
}

/// A line each, what it is behind a tab. The last word is not finished.
int run_complete(const Words& words) {
  const std::string begun = words.plain().empty() ? std::string() : words.plain().back();
  for (const Candidate& candidate : candidates_of(words.plain()))
    if (candidate.word.starts_with(begun)) std::cout << candidate.word << '\t' << candidate.help << '\n';
  return 0;
}

}  // namespace

const Command completion_command{
    .name = "completion",
    .help = "a script by which a shell completes the words of stet",
    .forms = {{"bash", "eval \"$(stet completion bash)\" in ~/.bashrc"},
              {"zsh", "source <(stet completion zsh) in ~/.zshrc, behind compinit"},
              {"fish", "stet completion fish | source in ~/.config/fish/config.fish"}},
    .options = {},
    .text =
        "make install puts them where the shells look for them. They complete commands, options, the names of ops and "
        "functions, stages and types.",
    .run = run_completion};

const Command complete_command{.name = "__complete",
                               .help = "what completion asks",
                               .forms = {{"-- <word>…", "the words that may stand in the place of the last one"}},
                               .options = {},
                               .text = {},
                               .run = run_complete,
                               .hidden = true};

}  // namespace stet::tools
