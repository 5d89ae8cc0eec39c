"""Predictions: what a query will do, from the rates of its input and the costs of its work.

operation     what an operator tells the model; `observation`, what a batch showed of it
join/         the paper's model of a join over a trace of rates, and its simulator
cost/         costs from the batches of a query, with their intervals
sizing/       any query at rates that last, and the instances that it needs
control/      instances by the work that arrives, looking ahead, and how well that went
live/         the model beside a running query: rates, work, forecasts
scalability   how far more threads help, by STRETCH
speed_up      how far more instances help a run, by Amdahl
"""
