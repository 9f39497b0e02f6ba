"""The contract of `GET /openapi.json`, imported by the first request for it.

Bodies of requests come from ``servers/api/bodies``; answers and routes are data in here. A golden file guards the
contract, and a fuzzer holds us to it.
"""
