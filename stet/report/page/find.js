// The one field in which names are looked for: tables show the rows that match, the timeline the spans.

const find = {
  words: "",
  parts: [],  // (words) → how many match

  start(field, status) {
    let waiting = 0;
    const changed = () => {
      this.words = field.value.trim().toLowerCase();
      let count = 0;
      for (const part of this.parts) count += part(this.words);
      status.textContent = this.words ? plural(count, "match", "matches") : "";
    };
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(changed, 120);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        field.value = "";
        changed();
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea")) return;
      event.preventDefault();
      field.focus();
    });
    this.set = (words) => {
      field.value = words;
      changed();
    };
  },
  matches: (text, words) => String(text ?? "").toLowerCase().includes(words),
};
