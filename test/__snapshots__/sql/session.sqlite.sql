-- NOW
select :now as now;
