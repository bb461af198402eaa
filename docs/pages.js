// Shows the file name above each block of code whose fence names a file, as in "```cpp main.cc".
for (const code of document.querySelectorAll("pre > code[class*='language-']")) {
  const file = [...code.classList].find((word) => word.includes("."));
  if (file) {
    const name = document.createElement("div");
    name.className = "file-name";
    name.textContent = file;
    code.parentElement.before(name);
  }
}
