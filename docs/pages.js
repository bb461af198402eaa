// A block of code whose first line says which file it is, as in "```cpp main.cc", shows the file's name above it.
for (const code of document.querySelectorAll("pre > code[class*='language-']")) {
  const file = [...code.classList].find((word) => word.includes("."));
  if (file) {
    const name = document.createElement("div");
    name.className = "file-name";
    name.textContent = file;
    code.parentElement.before(name);
  }
}
