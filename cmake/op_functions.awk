# op_functions.awk: what the public functions of ops are, from the blocks of declarations in stet/ops/*.cpp, ops.h, the table
# elementwise.def and what elementwise_names.txt says beside it. Run by op_headers.sh, which says what is printed.

function text(value) { return "R\"doc(" value ")doc\"" }
function trimmed(value) { gsub(/^ +| +$/, "", value); return value }

# The function that was read last, with the overloads that followed it.
function tell() {
  if (name == "") return
  if (family != told) print "STET_FAMILY(" text(toupper(substr(family, 1, 1)) substr(family, 2)) ")"
  told = family
  head = text(name) ", " text(signatures) ", " text(words details) ", " text(names)
  if (example == "") print "STET_FUNCTION_WITHOUT_EXAMPLE(" head ")"
  else print "STET_FUNCTION(" head ", " example ")"
  name = ""
}

# "Tensor sort(In x, int axis = -1, SortOptions options = {})" as it is shown, and what its structs hold.
function add_signature(declaration,    result, shown, parts, count, i) {
  result = declaration; sub(/[a-z0-9_]+\(.*/, "", result); result = trimmed(result)
  shown = declaration; sub(/^[^(]*/, "", shown); sub(/( const)?;$| \{$/, "", shown)
  sub(/,? ?Where where = Where::here\(\)/, "", shown)
  if (result != "Tensor") shown = shown " -> " result
  signatures = signatures (signatures == "" ? "" : ", ") "`" shown "`"
  if (result in members && !(result in mentioned)) {
    mentioned[result] = 1
    details = details " Gives " members[result] "."
  }
  count = split(shown, parts, /[ ,(&]+/)
  for (i = 1; i <= count; ++i)
    if (parts[i] ~ /Options$/ && parts[i] in members && !(parts[i] in mentioned)) {
      mentioned[parts[i]] = 1
      details = details " Options: " members[parts[i]] "."
    }
}

FILENAME ~ /elementwise_names\.txt$/ {
  if (!/^#/ && split($0, column, / *\| */) == 3) { names_of[column[1]] = column[2]; example_of[column[1]] = column[3] }
  next
}
FILENAME ~ /elementwise\.def$/ {
  if (!/^STET_[A-Z]+\(/) next
  tell()
  family = "elementwise"
  name = $0; sub(/^STET_[A-Z]+\( */, "", name); sub(/,.*/, "", name)
  words = $0; sub(/^[^"]*"/, "", words); sub(/".*/, "", words)
  signatures = /^STET_UNARY/ ? "`(In x)`" : /^STET_BINARY/ ? "`(In x, In y)`" : "`(In x, In y, In z)`"
  names = names_of[name]; example = example_of[name]; details = ""
  next
}
FNR == 1 {
  tell()
  inside = FILENAME ~ /ops\.h$/
  member = body = 0
  space = declaration = struct = ""
}
/^#ifdef STET_DECLARATIONS/ { inside = 1; next }
inside && /^#endif/ { inside = 0; next }
!inside { next }

# Enumerators, and structs: their members, with what is said of each.
/^enum class [A-Za-z]+ .*\};$/ {
  enumerators[$3] = $0; gsub(/.*\{ *| *\};/, "", enumerators[$3])
  sub(/\.$/, "", new_words)
  if (new_words != "") enumerators[$3] = enumerators[$3] ": " new_words
  new_words = ""
  next
}
/^struct [A-Za-z0-9]+ \{$/ { struct = $2; members[struct] = field = said = new_words = ""; next }
struct != "" && /^};/ { struct = ""; next }
struct != "" {
  if (/^ *\/\//) { sub(/^ *\/+ */, ""); said = said (said == "" ? "" : " ") $0; next }
  field = field (field == "" ? "" : " ") trimmed($0)
  if (field !~ /;/) next
  comment = said
  if (match(field, /; *\/\/ */)) { comment = substr(field, RSTART + RLENGTH); field = substr(field, 1, RSTART - 1) }
  sub(/;$/, "", field); sub(/\.$/, "", comment)
  type = field; sub(/ .*/, "", type)
  if (type in enumerators) comment = enumerators[type] (comment == "" ? "" : "; " comment)
  if (field !~ /[(]/ || field ~ /=/)
    members[struct] = members[struct] (members[struct] == "" ? "" : "; ") "`" field "`" (comment == "" ? "" : " (" comment ")")
  field = said = ""
  next
}

/^\/\/ --- / {
  tell()
  family = substr($0, 8); sub(/[;.].*/, "", family)
  split("", mentioned)  # structs are described where a group uses them first
  next
}
/^namespace [a-z]+ \{/ { space = $2 == "stet" ? "" : $2 "::"; next }
/^class STET_API Source / { member = 1 }  # its draws are functions of random:: too
/^};/ { member = 0 }
/^}/ { if (body) body = 0; else space = "" }  # of a class or function, or of the namespace
/\{$/ { body = 1 }
member { sub(/^  /, "") }

# Comments.
/^\/\/\/ Names: / { new_names = substr($0, 12); next }
/^\/\/\/ Example: / { new_example = substr($0, 14); next }
/^\/\/\/$/ { next }
/^\/\/\// { new_words = new_words (new_words == "" ? "" : " ") substr($0, 5); next }

# Declarations, which may go over several lines.
declaration == "" && (/^STET_API [^(]*\(/ || /^template / || (member && /^Tensor [a-z0-9_]+\(/)) { declaration = $0; from = FNR }
declaration == "" { new_words = new_names = new_example = ""; next }
FNR > from { declaration = declaration " " trimmed($0) }
declaration !~ /[{;]$/ { next }
{
  sub(/^STET_API /, "", declaration)
  if (declaration ~ /^template /) {
    if (!match(declaration, /(Tensor|TensorPart|std::vector<Tensor>) +[a-z0-9_]+\((In|A|const Tensor&) /)) { declaration = ""; next }
    declaration = substr(declaration, RSTART)
    gsub(/  +/, " ", declaration)
  }
  found = declaration; sub(/\(.*/, "", found); sub(/.* /, "", found)
  found = space found
  if (new_words new_names new_example != "") {
    tell()
    name = found; words = new_words; names = new_names; example = new_example
    signatures = details = ""
  }
  if (name == found) add_signature(declaration)
  declaration = new_words = new_names = new_example = ""
}
END { tell() }
