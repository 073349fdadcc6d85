for (const figure of document.querySelectorAll("figure")) {
  const spec = JSON.parse(figure.querySelector("script.spec").textContent);
  vegaEmbed(figure.querySelector(".chart"), spec, { actions: false, renderer: "svg" });
}
