"""Store what the API needs: keys, answers for repeated requests, stored responses."""
