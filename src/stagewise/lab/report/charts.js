// Charts from their specs. Expressions are interpreted, not compiled, so that a page may forbid eval.
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

async function draw(host, spec) {
  const { view } = await vegaEmbed(host, spec, { actions: false, renderer: "svg", ast: true });
  return view;
}

function drawn(figure) {
  // once, however often asked for
  figure.view ??= draw(figure.querySelector(".chart"), JSON.parse(figure.querySelector("script.spec").textContent));
  return figure.view;
}

function scrub(figure) {
  const [range, play, told, singles] = [".controls input[type=range]", ".play", "output", ".singles"].map((what) => figure.querySelector(what));
  const labels = [...figure.querySelectorAll("datalist option")].map((option) => option.textContent);
  let playing = null;
  const show = async () => {
    told.textContent = labels[range.value];
    range.setAttribute("aria-valuetext", labels[range.value]);
    const view = await drawn(figure);
    await view.signal("now", Number(range.value)).signal("singles", singles.checked).runAsync();
    figure.dataset.now = range.value;
  };
  const pause = () => {
    clearInterval(playing);
    playing = null;
    play.textContent = "Play";
  };
  play.addEventListener("click", () => {
    if (playing) return pause();
    if (range.value === range.max) range.value = 0;
    play.textContent = "Pause";
    playing = setInterval(() => {
      range.value = Number(range.value) + 1;
      show();
      if (range.value === range.max) pause();
    }, calm ? 800 : 200);
  });
  range.addEventListener("input", show);
  singles.addEventListener("change", show);
  told.textContent = labels[range.value];
}
