// What the datasets' stages took. A stage stands under the one that asks it for elements.

function stages_part(data) {
  const {stages} = data;
  if (!stages.length) return null;
  const most = Math.max(...stages.map((stage) => stage.seconds || 0), 1e-300);
  return make_table({
    caption: "Stages of the datasets", rows: stages, most: 60, style: "compact",
    search: (stage) => stage.name,
    columns: [
      {title: "stage", value: (stage) => stage.name,
        cell: (stage) => el("span", {class: "indented", style: `padding-left:${clamp(Math.floor(stage.depth || 0), 0, 12) * 16}px`},
          name_text(stage.name, "mono"))},
      {title: "elements", number: true, value: (stage) => stage.elements, cell: (stage) => count_text(stage.elements)},
      {title: "each", number: true, wide: true, value: (stage) => divided(stage.seconds, stage.elements),
        cell: (stage) => seconds_text(divided(stage.seconds, stage.elements))},
      {title: "time", number: true, value: (stage) => stage.seconds,
        cell: (stage) => metered(divided(stage.seconds, most), "--kind-stage", seconds_text(stage.seconds))},
    ],
  });
}
