"""LangGraph workflows, checkpointed in any store."""
