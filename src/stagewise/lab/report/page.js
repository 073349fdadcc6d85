const figures = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector(".spec"));
const folded = (figure) => figure.closest("details:not([open])");
document.querySelectorAll("figure.dynamics").forEach(scrub);

// What comes into sight is drawn first, the rest when there is time, one after another.
const sight = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => drawn(one.target)), { rootMargin: "400px" });
figures.forEach((figure) => sight.observe(figure));
const later = window.requestIdleCallback ?? ((act) => setTimeout(act, 50));
(async () => {
  for (const figure of figures.filter((figure) => !folded(figure))) {
    await new Promise((go) => later(go));
    await drawn(figure);
  }
  document.body.dataset.drawn = "all";
})();

const form = document.querySelector(".filters");
const claims = [...document.querySelectorAll(".claim")];
const words = new Map(claims.map((claim) => [claim, claim.textContent.toLowerCase()]));
function filter() {
  const { paper, verdict, text } = form.elements;
  const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const claim of claims) {
    const fits = (!paper.value || claim.dataset.paper === paper.value) && (!verdict.value || claim.dataset.verdict === verdict.value) && wanted.every((word) => words.get(claim).includes(word));
    claim.hidden = !fits;
    left += fits;
  }
  form.querySelector("output").textContent = `${left} claims`;
}
form.addEventListener("input", filter);
document.querySelectorAll("a[data-paper]").forEach((link) =>
  link.addEventListener("click", () => {
    form.reset();
    form.elements.paper.value = link.dataset.paper;
    filter();
  })
);

function open() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches(".claim")) {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", open);
open();
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  unfolded.forEach((one) => (one.open = true));
  figures.forEach(drawn);
});
addEventListener("afterprint", () => unfolded.forEach((one) => (one.open = false)));
