summary(); layers(); memory(); roofline(); constants(); accuracy();
