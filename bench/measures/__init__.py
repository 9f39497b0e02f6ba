"""One file for each measurement: ``async def measure(plan: Plan) -> Rows``."""
