summary(); layers(); memory(); roofline(); constants(); accuracy();
addEventListener("resize", roofline);
